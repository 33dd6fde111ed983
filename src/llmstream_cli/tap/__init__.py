"""A loopback proxy between an application and its server: bytes pass unchanged, exchanges are recorded."""
