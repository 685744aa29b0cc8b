"""The secret of a cluster: one line that survives copying, and says what is wrong when it did not."""

from __future__ import annotations

import base64
import json
import zlib

import pytest
from cryptography import x509
from hypothesis import given
from hypothesis import strategies as st

from brookmq.base.errors import OperationError
from brookmq.store.certificates import KeyPair, check_authority, issue, make_authority
from brookmq.store.core_address import parse_core
from brookmq.store.secret import CHARACTERS_MAX, HEAD, ClusterSecret, decode_secret, encode_secret, make_secret

CORES = [parse_core(text) for text in ("a@10.0.0.1", "b@[::1]:1/2", "c@x.example")]
SECRET = make_secret("fleet", CORES)
LINE = encode_secret(SECRET)


def test_it_comes_back_from_its_line() -> None:
    assert decode_secret(LINE) == SECRET
    assert decode_secret(f"\n  {LINE}\r\n") == SECRET
    assert LINE.isascii()
    assert "\n" not in LINE
    assert len(LINE) < 4096, "a terminal takes no longer line"


def test_two_clusters_of_one_name_share_nothing() -> None:
    other = make_secret("fleet", CORES)
    for mine, others in (
        (SECRET.identity, other.identity),
        (SECRET.authority.key, other.authority.key),
        (SECRET.core_password, other.core_password),
        (SECRET.route_password, other.route_password),
    ):
        assert mine != others
    assert SECRET.core_password != SECRET.route_password


def test_it_is_not_shown_by_accident() -> None:
    shown = repr(SECRET)
    assert SECRET.core_password not in shown
    assert SECRET.route_password not in shown
    assert "PRIVATE" not in shown


@pytest.mark.parametrize("text", ["", "x", "-----BEGIN", f"{HEAD}:", f"{HEAD}:one:abc", f"{HEAD}x:1:abc"])
def test_what_is_no_secret(text: str) -> None:
    with pytest.raises(OperationError, match="this is not the secret of a cluster"):
        decode_secret(text)


def test_another_format_is_named() -> None:
    with pytest.raises(OperationError, match="has format 2, and this BrookMQ knows format 1"):
        decode_secret(LINE.replace(":1:", ":2:"))


def complaint_about(text: str) -> str:
    try:
        decode_secret(text)
    except OperationError as error:
        return str(error)
    return ""


@given(st.integers(0, len(LINE) - 1), st.sampled_from(["cut", "change", "lose", "double"]))
def test_a_line_that_was_not_copied_whole_is_told_and_not_shown(place: int, how: str) -> None:
    body = len(HEAD) + len(":1:")
    place = max(place, body)
    other = "A" if LINE[place] != "A" else "B"
    text = {
        "cut": LINE[:place],
        "change": LINE[:place] + other + LINE[place + 1 :],
        "lose": LINE[:place] + LINE[place + 1 :],
        "double": LINE[:place] + LINE[place] + LINE[place:],
    }[how]
    told = complaint_about(text)
    assert SECRET.core_password not in told
    assert "copy it again" in told or decode_secret(text) == SECRET, "the last character may have bits that say nothing"


def packed(fields: object) -> str:
    body = base64.urlsafe_b64encode(zlib.compress(json.dumps(fields).encode()))
    return f"{HEAD}:1:{body.decode()}"


def test_fields_that_are_missing_or_wrong() -> None:
    fields = json.loads(zlib.decompress(base64.urlsafe_b64decode(LINE.rpartition(":")[2])))
    assert decode_secret(packed(fields)) == SECRET
    for name in fields:
        with pytest.raises(OperationError, match="is damaged"):
            decode_secret(packed({key: value for key, value in fields.items() if key != name}))
    for wrong in ([], "text", None, {**fields, "cores": [["a"]]}, {**fields, "authority": ["one"]}):
        with pytest.raises(OperationError, match="is damaged"):
            decode_secret(packed(wrong))
    with pytest.raises(OperationError, match="3, 5 or 7 cores"):
        decode_secret(packed({**fields, "cores": fields["cores"][:2]}))
    with pytest.raises(OperationError, match="authority"):
        decode_secret(packed({**fields, "authority": ["no", "pem"]}))


def test_sizes_are_bounded() -> None:
    with pytest.raises(OperationError, match="is damaged"):
        decode_secret(f"{HEAD}:1:" + "A" * CHARACTERS_MAX)
    bomb = base64.urlsafe_b64encode(zlib.compress(bytes(30_000_000), 9)).decode()
    assert len(bomb) < CHARACTERS_MAX
    with pytest.raises(OperationError, match="is damaged"):
        decode_secret(f"{HEAD}:1:{bomb}")


class TestCertificates:
    def test_a_member_has_the_names_that_others_use(self) -> None:
        pair = issue(SECRET.authority, "b@x.example", ["x.example", "10.0.0.1", "::1", "x.example"])
        certificate = x509.load_pem_x509_certificate(pair.certificate.encode())
        root = x509.load_pem_x509_certificate(SECRET.authority.certificate.encode())
        certificate.verify_directly_issued_by(root)
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        assert names.get_values_for_type(x509.DNSName) == ["x.example"]
        assert [str(each) for each in names.get_values_for_type(x509.IPAddress)] == ["10.0.0.1", "::1"]
        assert certificate.not_valid_after_utc == root.not_valid_after_utc
        assert not certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca

    def test_a_name_longer_than_a_certificate_takes(self) -> None:
        assert issue(SECRET.authority, "n" * 200 + "@h", ["h"]).key

    def test_a_key_of_another_authority(self) -> None:
        other = make_authority("fleet")
        check_authority(other)
        with pytest.raises(OperationError, match="do not belong together"):
            check_authority(KeyPair(SECRET.authority.certificate, other.key))
        with pytest.raises(OperationError, match="cannot be read"):
            check_authority(KeyPair(issue(other, "a@h", ["h"]).certificate, other.key))


def test_fields_have_their_types() -> None:
    assert isinstance(decode_secret(LINE), ClusterSecret)
    assert all(isinstance(core.port, int) for core in decode_secret(LINE).cores)
