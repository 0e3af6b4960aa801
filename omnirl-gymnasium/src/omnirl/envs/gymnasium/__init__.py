"""The backend for Gymnasium environments; nothing is imported before it is asked for."""
