"""The conformance suite that every backend passes, ours or a third party's."""

__all__: list[str] = []
