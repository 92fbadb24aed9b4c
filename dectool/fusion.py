"""Fusion: many arrays in few messages.

Every operation of a communicator takes a list, tuple or dict of arrays and sends it as one message;
that copies the arrays into one. :class:`Buckets` are flat buffers of which the arrays are views, so
that nothing is copied, cut so that one is sent while the next is made.
"""

from __future__ import annotations

from dectool.communicator._bucket import Bucket as Bucket
from dectool.communicator._bucket_size import best_bucket_bytes as best_bucket_bytes
from dectool.communicator._buckets import Buckets as Buckets
from dectool.communicator._spec import Spec as Spec

__all__ = ["Bucket", "Buckets", "Spec", "best_bucket_bytes"]
