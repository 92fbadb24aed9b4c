"""Speed of dectool against rivals on the same machine, in the same run."""
