"""The server of an execution: what identifies it, where its tarball is, when another one is refused."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from loadprint.commands.campaign.campaign_file import load
from loadprint.commands.campaign.execution import digest, open_execution, plan, use_server
from loadprint.commands.campaign.server_identity import MAIN, declared, of_sides
from loadprint.configuration.document import DocumentError

QUICK = Path(__file__).parents[2] / "ansible" / "campaigns" / "quick.yml"
OLD = {"flavour": "mysql", "version": "8.0.12", "program_sha256": "a" * 64}
NEW = {"flavour": "mysql", "version": "5.7.22", "program_sha256": "b" * 64}


def test_tarballs_of_the_same_name_are_told_apart_by_their_content(tmp_path: Path) -> None:
    result = []
    for folder, content in (("a", b"8.0.12"), ("b", b"5.7.22")):
        tarball = tmp_path / folder / "mysql-linux.tar.gz"
        tarball.parent.mkdir()
        tarball.write_bytes(content)
        result.append(declared("tarball", {"tarball": str(tarball)}))
        assert result[-1]["sha256"] == hashlib.sha256(content).hexdigest()
    campaign = load(QUICK)
    assert digest(campaign, servers={MAIN: result[0]}) != digest(campaign, servers={MAIN: result[1]})
    # replaced in place: the path is the same
    Path(result[0]["tarball"]).write_bytes(b"5.7.22")
    again = declared("tarball", {"tarball": result[0]["tarball"]})
    assert digest(campaign, servers={MAIN: result[0]}) != digest(campaign, servers={MAIN: again})


def test_a_relative_tarball_is_of_the_users_directory_then_of_the_checkout(tmp_path: Path) -> None:
    user, checkout = tmp_path / "user", tmp_path / "checkout"
    for folder in (user, checkout):
        folder.mkdir()
    settings = {"tarball": "m.tar.gz", "directories": [str(user), str(checkout)]}
    with pytest.raises(DocumentError) as missing:
        declared("tarball", settings)
    assert str(user / "m.tar.gz") in str(missing.value)
    assert str(checkout / "m.tar.gz") in str(missing.value)
    (checkout / "m.tar.gz").write_bytes(b"checkout")
    assert declared("tarball", settings)["tarball"] == str(checkout / "m.tar.gz")
    (user / "m.tar.gz").write_bytes(b"user")
    assert declared("tarball", settings)["tarball"] == str(user / "m.tar.gz")


def test_what_is_no_file_and_no_tarball_at_all_say_so(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match=f"{tmp_path}: Is a directory"):
        declared("tarball", {"tarball": str(tmp_path)})
    with pytest.raises(DocumentError, match="server_tarball=PATH-OR-URL"):
        declared("tarball", {})


def test_only_the_settings_of_the_chosen_source_count() -> None:
    base = {"packages": ["mysql-server-core"], "rootfs_suite": "unstable", "tarball": "unused.tar.gz"}
    assert declared("package", base) == declared("package", base | {"rootfs_suite": "trixie"})
    assert declared("rootfs", base) != declared("rootfs", base | {"rootfs_suite": "trixie"})
    assert declared("existing", {"host": "a"}) != declared("existing", {"host": "b"})
    assert declared("rootfs", base) != declared("package", base)


def test_an_execution_resumes_with_the_server_it_began_with_only(tmp_path: Path) -> None:
    opened = open_execution(load(QUICK), "a" * 64, tmp_path)
    assert opened.directory is not None
    assert use_server(opened.directory, dict(OLD)).document["servers"][MAIN]["obtained"] == OLD
    again = open_execution(load(QUICK), "a" * 64, tmp_path)
    assert again.directory == opened.directory
    assert use_server(opened.directory, dict(OLD)).document["servers"][MAIN]["obtained"] == OLD
    with pytest.raises(DocumentError) as refused:
        use_server(opened.directory, dict(NEW))
    assert all(word in str(refused.value) for word in ("mysql 8.0.12", "mysql 5.7.22", "campaign_new=true"))
    assert "\n" not in str(refused.value)


TWO = """
sides.insert.server.source=rootfs
sides.oltp.server={source: tarball, tarball: PATH}
"""


def test_each_side_can_have_its_own_server_and_its_own_prepared_data(tmp_path: Path) -> None:
    tarball = tmp_path / "old.tar.gz"
    tarball.write_bytes(b"8.0.12")
    campaign = load(QUICK, TWO.replace("PATH", str(tarball)).split("\n")[1:3])
    servers = of_sides(campaign, {"packages": ["a"]}, {"source": "auto"})
    (key,) = (key for key in servers if key.startswith("tarball-"))
    assert set(servers) == {"rootfs", key}, "no side uses the server of the campaign"
    assert servers[key]["sha256"] == hashlib.sha256(b"8.0.12").hexdigest()
    document = plan(campaign, "a" * 64, servers=servers).document
    assert {each["name"] for each in document["prepared"]} == {"insert-rootfs", f"oltp-{key}"}
    assert document["sides"]["oltp"]["prepared"] == f"oltp-{key}"
    tarball.write_bytes(b"5.7.22")
    again = of_sides(campaign, {"packages": ["a"]}, {"source": "auto"})
    assert digest(campaign, servers=again) != digest(campaign, servers=servers)


def test_one_server_for_all_sides_is_the_campaigns() -> None:
    campaign = load(QUICK)
    assert of_sides(campaign, {}, None) == {MAIN: {"source": "auto"}}
    assert [each["name"] for each in plan(campaign, "a" * 64).document["prepared"]] == ["oltp", "insert"]


@pytest.mark.parametrize("override", ["source=tarball", "tarball=/x.tar.gz"])
def test_a_tarball_and_its_path_need_each_other(override: str) -> None:
    with pytest.raises(DocumentError, match="need each other"):
        load(QUICK, [f"sides.oltp.server.{override}"])
