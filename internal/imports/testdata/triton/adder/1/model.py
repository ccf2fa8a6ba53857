class TritonPythonModel: pass
