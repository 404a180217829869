"""The version of everything: CMakeLists.txt and wheel.py read it here."""

__version__ = "0.1.0"
