"""What a container reads from its environment and arguments."""

import pytest

from topsail.container import settings
from topsail.container.settings import SettingsError

ENVIRON = {"TOPSAIL_SIDECAR": "127.0.0.1:7", "TOPSAIL_MODEL": "wine", "TOPSAIL_VERSION": "1"}


def test_the_environment():
    got = settings.read(
        ENVIRON
        | {
            "TOPSAIL_TOKEN": "secret",
            "TOPSAIL_INPUT_TYPE": "integers",
            "TOPSAIL_INPUT_LENGTH": "13",
            "TOPSAIL_REPLICA": "r-1",
        }
    )
    assert (got.host, got.port, got.model, got.version) == ("127.0.0.1", 7, "wine", "1")
    assert (got.token, got.input_type, got.input_length, got.replica) == ("secret", "integers", 13, "r-1")


def test_an_input_type_that_is_any_is_none():
    assert settings.read(ENVIRON | {"TOPSAIL_INPUT_TYPE": "any"}).input_type is None


def test_the_token_file_is_read_each_time(tmp_path):
    file = tmp_path / "token"
    got = settings.read(ENVIRON | {"TOPSAIL_TOKEN_FILE": str(file)})
    with pytest.raises(FileNotFoundError):
        got.current_token()
    file.write_text("\n")
    with pytest.raises(OSError, match="is empty"):
        got.current_token()
    for token in ("one", "two"):
        file.write_text(token + "\n")
        assert got.current_token() == token


def test_a_token_wins_over_the_token_file():
    got = settings.read(ENVIRON | {"TOPSAIL_TOKEN_FILE": "/nowhere"}, token="mine")
    assert got.current_token() == "mine"


def test_what_is_not_set_is_open():
    got = settings.read(ENVIRON)
    assert (got.token, got.input_type, got.input_length, got.give_up) == ("", None, None, 60.0)


def test_arguments_win():
    got = settings.read(ENVIRON, sidecar="other:8", model="beer", version=None, give_up=3.0)
    assert (got.host, got.port, got.model, got.version, got.give_up) == ("other", 8, "beer", "1", 3.0)


@pytest.mark.parametrize(("text", "host"), [("[::1]:9", "::1"), (":9", "127.0.0.1"), ("a.b:9", "a.b")])
def test_addresses(text, host):
    got = settings.read(ENVIRON | {"TOPSAIL_SIDECAR": text})
    assert (got.host, got.port) == (host, 9)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"TOPSAIL_SIDECAR": ""}, "Topsail starts it"),
        ({"TOPSAIL_SIDECAR": "host"}, "'host' is not host:port"),
        ({"TOPSAIL_SIDECAR": "host:0"}, "is not host:port"),
        ({"TOPSAIL_SIDECAR": "host:99999"}, "is not host:port"),
        ({"TOPSAIL_MODEL": ""}, "TOPSAIL_MODEL is not set"),
        ({"TOPSAIL_VERSION": ""}, "TOPSAIL_VERSION is not set"),
        ({"TOPSAIL_INPUT_LENGTH": "-1"}, "TOPSAIL_INPUT_LENGTH='-1' is not a number"),
        ({"TOPSAIL_INPUT_TYPE": "real"}, "input type 'real' is unknown"),
    ],
)
def test_what_is_wrong_is_named(change, says):
    with pytest.raises(SettingsError, match=says):
        settings.read(ENVIRON | change)
