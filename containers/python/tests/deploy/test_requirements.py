"""Which distributions a model requires, by what is installed in a folder of the test."""

import sys

import pytest

from topsail.deploy import requirements
from topsail.deploy.failure import DeployFailed
from topsail.deploy.frozen import Frozen, with_modules


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Installs a distribution with files, from a URL if that is said."""
    monkeypatch.syspath_prepend(str(tmp_path))
    requirements._distributions.cache_clear()

    def install(name, files, url=None, installer="pip"):
        info = tmp_path / f"{name.replace('-', '_')}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "INSTALLER").write_text(installer)
        for file, text in files.items():
            (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / file).write_text(text)
        (info / "RECORD").write_text("".join(f"{file},,\n" for file in files))
        if url:
            (info / "direct_url.json").write_text(f'{{"url": "{url}", "archive_info": {{}}}}')

    yield install
    requirements._distributions.cache_clear()
    for module in [m for m in sys.modules if m.partition(".")[0] in ("cloud", "privpkg", "mine", "broken")]:
        del sys.modules[module]


def needed(*modules):
    frozen = with_modules(Frozen(b""), set(modules))
    return frozen.distributions, sorted(frozen.sources)


@pytest.fixture
def cloud(install):
    install("cloud-auth", {"cloud/auth/__init__.py": "", "cloud/auth/keys.py": ""})
    install("cloud-api-core", {"cloud/api_core/__init__.py": ""})
    install("cloud-protos", {"cloud/type/date.py": ""})


@pytest.mark.parametrize(
    ("modules", "wanted"),
    [
        (["cloud.auth"], {"cloud-auth"}),
        (["cloud.auth.keys"], {"cloud-auth"}),
        (["cloud", "cloud.auth.keys", "cloud.type.date"], {"cloud-auth", "cloud-protos"}),
        (["cloud.api_core.new"], {"cloud-api-core"}),
        (["cloud"], {"cloud-auth", "cloud-api-core", "cloud-protos"}),
    ],
)
def test_several_distributions_share_a_namespace(cloud, modules, wanted):
    assert needed(*modules) == (wanted, [])


def test_what_sources_import_of_a_namespace(cloud, tmp_path):
    (tmp_path / "mine.py").write_text("from cloud import auth\nfrom cloud.type import date\n")
    assert needed("mine") == ({"cloud-auth", "cloud-protos"}, ["mine.py"])


def test_what_code_imports_of_a_namespace(cloud):
    def predict(inputs):
        from cloud import auth
        from cloud.type.date import today

        return [auth, today] * len(inputs)

    from topsail.deploy.frozen import freeze

    assert freeze(predict).distributions - {"cloudpickle"} == {"cloud-auth", "cloud-protos"}


@pytest.mark.parametrize("url", ["https://example.com/privpkg-1.0.whl", "git+ssh://git@example.com/privpkg.git"])
def test_what_was_installed_from_a_url_travels(install, url):
    """By its name, an index may have a stranger's."""
    install("privpkg", {"privpkg/__init__.py": "from . import sums", "privpkg/sums.py": ""}, url)
    assert needed("privpkg") == (set(), ["privpkg/__init__.py", "privpkg/sums.py"])


def test_what_was_compiled_from_a_url_is_refused(install):
    install("privpkg", {"privpkg/__init__.py": "", "privpkg/_fast.so": ""}, "https://example.com/privpkg-1.0.whl")
    with pytest.raises(
        DeployFailed, match=r"'privpkg', which was installed from https://example.com/privpkg-1.0.whl and"
    ):
        needed("privpkg")


def test_conda_says_where_it_built(install):
    install("privpkg", {"privpkg/__init__.py": ""}, "file:///home/conda/feedstock_root/work", "conda")
    assert needed("privpkg") == ({"privpkg"}, [])


def test_a_namespace_of_ones_own(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    for file in ("mine/tools/__init__.py", "mine/tools/sums.py", "mine/other/__init__.py"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("")
    assert needed("mine.tools.sums") == (set(), ["mine/tools/__init__.py", "mine/tools/sums.py"])
    sys.modules.pop("mine", None)


def test_sources_that_are_none(tmp_path, monkeypatch):
    """A template, a module of Python 2, and what is no text."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken/__init__.py").write_text("import cloudpickle")
    (tmp_path / "broken/old.py").write_text('print "x {{ template }}"')
    (tmp_path / "broken/odd.py").write_bytes(b"x = 1\0")
    assert needed("broken") == ({"cloudpickle"}, ["broken/__init__.py", "broken/odd.py", "broken/old.py"])


def test_a_folder_with_too_many_sources(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "broken").mkdir()
    for i in range(1001):
        (tmp_path / f"broken/m{i}.py").touch()
    (tmp_path / "broken/__init__.py").touch()
    with pytest.raises(
        DeployFailed, match="'broken', which no index has, and which has 1002 files of source, more than the 1000"
    ):
        needed("broken")
