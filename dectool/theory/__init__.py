"""Predictions: convergence rates, iteration matrices and bounds to hold measurements against."""

__all__: list[str] = []
