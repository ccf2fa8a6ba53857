"""What Schemathesis cannot know of good requests from their schemas alone."""

import schemathesis

# An input of each app, for feedback: no query_id that is made up is that of an answer.
INPUTS = {
    "bytes": "AAAA", "doubles": [1.5], "floats": [1.5], "ints": [1], "strings": "a text",
    "shop": [1.5, 2.5, 3.5, 4.5], "spare": [1.5],
}  # fmt: skip
PATIENCE = "5000"  # milliseconds
LARGEST = 2**63 - 1
MOST = 32  # pieces of feedback whose models are retried, in vain


@schemathesis.hook
def before_call(_context, case, **_kwargs):
    case.headers["Accept"] = "application/json"  # else feedback is answered as Clipper does, which is not JSON
    _, app, what = case.path.split("/") if case.path.count("/") == 2 else ("", "", "")
    if case.meta is None or not app:
        return
    if what == "update" and case.headers.get("X-Timeout-Ms", "").strip("0").isdigit():
        case.headers["X-Timeout-Ms"] = PATIENCE  # else it may be too short to store anything
    if not case.meta.generation.mode.is_positive:
        if case.headers.get("X-Timeout-Ms") == "":
            case.headers["X-Timeout-Ms"] = "no number"  # an empty header is as good as none
        return
    case.body = whole(case.body)
    if int(case.headers.get("X-Timeout-Ms", 0)) > LARGEST:
        case.headers["X-Timeout-Ms"] = str(LARGEST)
    if what == "predict":
        for name in ("version", "candidate_models"):  # there are none of such names
            case.body.pop(name, None)
        if case.body.get("slo_micros", 0) > LARGEST:
            case.body["slo_micros"] = LARGEST
    if what == "update":
        if "feedback_batch" in case.body:
            del case.body["feedback_batch"][MOST:]
        for feedback in case.body.get("feedback_batch", [case.body]):
            name_by_input(feedback, app)


def name_by_input(feedback, app):
    if feedback.pop("query_id", None) is not None:
        feedback.setdefault("input", INPUTS[app])


def whole(value):
    """Whole numbers are those that are written so: in a schema 1.0 is an integer."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, list):
        return [whole(v) for v in value]
    if isinstance(value, dict):
        return {k: whole(v) for k, v in value.items()}
    return value
