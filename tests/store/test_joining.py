"""A data folder becomes a core of a cluster, once, and never anything else afterwards."""

from __future__ import annotations

import json
import ssl
import stat
from pathlib import Path

import pytest

from brookmq.base.errors import OperationError
from brookmq.store.belonging import settle
from brookmq.store.core_address import parse_core
from brookmq.store.folder import DataFolder
from brookmq.store.joining import init_cluster, join_cluster, read_secret
from brookmq.store.membership import Membership, read_membership, secret_path
from brookmq.store.prepare import StoreOptions, prepare
from brookmq.store.secret import make_secret

CORES = [parse_core(text) for text in ("a@10.0.0.1", "b@10.0.0.2", "c@x.example:1/2")]
NAMES = [core.name for core in CORES]


def found(path: Path) -> Membership:
    return init_cluster(path / "a", "fleet", NAMES[0], CORES)[0]


def membership_of(path: Path) -> Membership | None:
    folder = DataFolder.open(path, 0)
    try:
        return read_membership(folder)
    finally:
        folder.close()


def settled(path: Path, membership: Membership | None) -> None:
    folder = DataFolder.open(path, 0)
    try:
        settle(folder, membership)
    finally:
        folder.close()


class TestInit:
    def test_what_it_leaves_is_for_this_user_only(self, tmp_path: Path) -> None:
        membership, secret = init_cluster(tmp_path / "a", "fleet", NAMES[0], CORES)
        assert secret == tmp_path / "a" / "cluster" / "secret" == secret_path(tmp_path / "a")
        assert stat.S_IMODE(secret.parent.stat().st_mode) == 0o700
        files = {file.name: stat.S_IMODE(file.stat().st_mode) for file in secret.parent.iterdir()}
        assert files == dict.fromkeys(("ca.crt", "membership", "node.crt", "node.key", "secret"), 0o600)
        assert membership_of(tmp_path / "a") == membership
        assert (membership.cluster, membership.node, membership.listen) == ("fleet", CORES[0], "10.0.0.1")
        assert membership.core_password not in repr(membership)
        assert membership.route_password not in repr(membership)

    def test_a_second_one_is_refused(self, tmp_path: Path) -> None:
        found(tmp_path)
        with pytest.raises(OperationError, match=r"is already the core a@10.0.0.1 of the cluster fleet"):
            init_cluster(tmp_path / "a", "other", NAMES[0], CORES)

    def test_one_that_was_killed_before_its_end_can_be_repeated(self, tmp_path: Path) -> None:
        found(tmp_path)
        (tmp_path / "a" / "cluster" / "membership").unlink()
        membership = found(tmp_path)
        assert read_secret(secret_path(tmp_path / "a")).identity == membership.identity

    def test_a_node_that_is_none_of_the_cores(self, tmp_path: Path) -> None:
        with pytest.raises(OperationError, match=r"d@h is none of the cluster's cores, which are a@10.0.0.1, b@"):
            init_cluster(tmp_path / "a", "fleet", "d@h", CORES)
        assert not secret_path(tmp_path / "a").exists()

    def test_a_folder_that_a_node_uses(self, tmp_path: Path) -> None:
        folder = DataFolder.open(tmp_path)
        with pytest.raises(OperationError, match="is in use by another node"):
            init_cluster(tmp_path, "fleet", NAMES[0], CORES)
        folder.close()


class TestJoin:
    def test_each_core_gets_its_own_certificate_and_nobody_the_authority_s_key(self, tmp_path: Path) -> None:
        first = found(tmp_path)
        secret = read_secret(secret_path(tmp_path / "a"))
        second = join_cluster(tmp_path / "b", secret, NAMES[1], "0.0.0.0")
        assert second == membership_of(tmp_path / "b")
        assert (second.identity, second.credentials, second.cores) == (first.identity, first.credentials, first.cores)
        assert (second.listen, second.own_host) == ("0.0.0.0", "127.0.0.1")
        assert second.tls_files.key.read_text() != first.tls_files.key.read_text()
        kept = "".join(file.read_text() for file in second.path.iterdir())
        assert secret.authority.key.splitlines()[1] not in kept
        context = second.tls_context()
        assert context.verify_mode is ssl.CERT_REQUIRED
        assert context.check_hostname
        assert context.minimum_version is ssl.TLSVersion.TLSv1_3
        assert len(context.get_ca_certs()) == 1, "nobody else's authority"

    def test_again_mends_what_is_damaged_and_keeps_where_it_listens(self, tmp_path: Path) -> None:
        found(tmp_path)
        secret = read_secret(secret_path(tmp_path / "a"))
        before = join_cluster(tmp_path / "b", secret, NAMES[1], "::")
        settled(tmp_path / "b", before)
        key = before.tls_files.key.read_text()
        assert join_cluster(tmp_path / "b", secret, NAMES[1]) == before
        assert before.tls_files.key.read_text() != key
        before.tls_files.certificate.write_text("garbage")
        with pytest.raises(OperationError, match=r"cannot be read .*run `brookmq cluster join`"):
            before.tls_context()
        (before.path / "membership").write_text("{}")
        with pytest.raises(OperationError, match="is damaged; run `brookmq cluster join`"):
            membership_of(tmp_path / "b")
        mended = join_cluster(tmp_path / "b", secret, NAMES[1])
        assert mended.tls_context()
        settled(tmp_path / "b", mended)

    def test_as_another_core_or_in_another_cluster(self, tmp_path: Path) -> None:
        found(tmp_path)
        secret = read_secret(secret_path(tmp_path / "a"))
        join_cluster(tmp_path / "b", secret, NAMES[1])
        for other, name in ((secret, NAMES[2]), (make_secret("fleet", CORES), NAMES[1])):
            with pytest.raises(OperationError, match=r"is already the core b@10.0.0.2 of the cluster fleet"):
                join_cluster(tmp_path / "b", other, name)

    def test_a_membership_of_a_newer_format(self, tmp_path: Path) -> None:
        path = found(tmp_path).path / "membership"
        path.write_text(json.dumps({**json.loads(path.read_text()), "format": 2}))
        with pytest.raises(OperationError, match="has format 2, and this BrookMQ knows format 1"):
            membership_of(tmp_path / "a")

    @pytest.mark.parametrize(
        ("content", "words"),
        [(None, "there is no file"), (b"\xff", "is no secret of a cluster"), (b"abc", "this is not the secret")],
    )
    def test_a_file_that_is_no_secret(self, tmp_path: Path, content: bytes | None, words: str) -> None:
        if content is not None:
            (tmp_path / "secret").write_bytes(content)
        with pytest.raises(OperationError, match=words):
            read_secret(tmp_path / "secret")
        with pytest.raises(OperationError, match="cannot be read: Is a directory"):
            read_secret(tmp_path)


class TestBelonging:
    """A server that is started as something else deletes its data, so nothing may lead there."""

    def test_lone_data_stays_lone(self, tmp_path: Path) -> None:
        settled(tmp_path / "a", None)
        settled(tmp_path / "a", None)
        with pytest.raises(OperationError, match="the data of a lone node, which a cluster would delete"):
            found(tmp_path)
        with pytest.raises(OperationError, match="choose an empty folder with --data-dir"):
            join_cluster(tmp_path / "a", make_secret("fleet", CORES), NAMES[0])
        assert not (tmp_path / "a" / "cluster").exists()

    def test_lone_data_of_a_node_that_wrote_no_mark_yet(self, tmp_path: Path) -> None:
        (tmp_path / "a" / "store" / "jetstream" / "BROOKMQ").mkdir(parents=True)
        with pytest.raises(OperationError, match="the data of a lone node"):
            found(tmp_path)

    def test_a_membership_that_was_copied_to_lone_data_does_not_start(self, tmp_path: Path) -> None:
        membership = found(tmp_path)
        settled(tmp_path / "lone", None)
        membership.path.rename(tmp_path / "lone" / "cluster")
        folder = DataFolder.open(tmp_path / "lone")
        moved = read_membership(folder)
        assert moved is not None
        with pytest.raises(OperationError, match="the data of a lone node"):
            prepare(folder, StoreOptions(NAMES[0]), moved)
        assert not (folder.store_path / "nats.conf").exists()
        folder.close()

    def test_a_member_s_data_does_not_start_alone(self, tmp_path: Path) -> None:
        membership = found(tmp_path)
        secret = read_secret(secret_path(tmp_path / "a"))
        settled(tmp_path / "a", membership)
        (membership.path / "membership").unlink()
        with pytest.raises(OperationError, match=r"the data of a@10.0.0.1 in the cluster fleet, .*cluster join"):
            settled(tmp_path / "a", None)
        settled(tmp_path / "a", join_cluster(tmp_path / "a", secret, NAMES[0]))

    def test_a_member_s_data_is_of_its_cluster_and_its_name(self, tmp_path: Path) -> None:
        membership = found(tmp_path)
        settled(tmp_path / "a", membership)
        (membership.path / "membership").unlink()
        with pytest.raises(OperationError, match=r"fleet, another one of that name; it cannot become a@10.0.0.1"):
            found(tmp_path)
        secret = read_secret(secret_path(tmp_path / "a"))
        with pytest.raises(OperationError, match=r"it cannot become b@10.0.0.2 in the cluster fleet"):
            join_cluster(tmp_path / "a", secret, NAMES[1])

    def test_a_mark_that_is_damaged(self, tmp_path: Path) -> None:
        settled(tmp_path, None)
        (tmp_path / "store" / "belongs-to").write_text("[]")
        with pytest.raises(OperationError, match="it cannot be told whose data"):
            settled(tmp_path, None)


def test_a_configuration_that_says_something_else_than_the_cluster(tmp_path: Path) -> None:
    membership = found(tmp_path)
    folder = DataFolder.open(tmp_path / "a")
    with pytest.raises(OperationError, match=r"the core a@10.0.0.1 of the cluster fleet, and node.name is brookmq@h"):
        prepare(folder, StoreOptions("brookmq@h"), membership)
    with pytest.raises(OperationError, match=r"store.port is 5, .* at port 4222: remove store.port"):
        prepare(folder, StoreOptions(NAMES[0], port=5), membership)
    assert not (folder.store_path / "belongs-to").exists()
    assert prepare(folder, StoreOptions(NAMES[0], port=4222), membership).credentials == membership.credentials
    settings = folder.store_path / "nats.conf"
    assert stat.S_IMODE(settings.stat().st_mode) == 0o600
    assert settings.read_text().count('verify: true, min_version: "1.3"') == 2, "on both ports"
    folder.close()
