"""What Schemathesis cannot know of good requests from their schemas alone."""

from urllib.parse import unquote

import schemathesis


@schemathesis.serializer("application/zip", "application/x-tar")
def archive(_context, value):
    return value if isinstance(value, bytes) else str(value).encode()


@schemathesis.hook
def before_call(_context, case, **_kwargs):
    if case.meta is not None and case.meta.generation.mode.is_positive and isinstance(case.body, dict):
        name_as_path(case)


def name_as_path(case):
    """The body of what the path names has its name."""
    for operation, member, parameter in [("putApp", "name", "app"), ("createVersion", "model", "model")]:
        if case.operation.definition.raw.get("operationId") == operation and member in case.body:
            case.body[member] = unquote(str(case.path_parameters[parameter]))
