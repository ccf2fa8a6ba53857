"""As much of PySpark as the runtime uses, without Spark: frames are lists of rows."""
