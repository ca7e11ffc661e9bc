"""The config file: read as people mean it, edited without loss."""
