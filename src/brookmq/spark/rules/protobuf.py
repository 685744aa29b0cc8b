"""Protobuf payloads: one message of a type that the schema's descriptors have.

Descriptors are what ``protoc --include_imports --descriptor_set_out`` writes. A schema may have the source text
instead; it is then compiled where ``grpcio-tools`` is installed.
"""

from __future__ import annotations

import base64
import binascii
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from brookmq.spark.rules.fields import DEPTH_MAX, FieldsError
from brookmq.spark.rules.types import (
    BOOLEAN,
    BYTES,
    INTEGER,
    NUMBER,
    TEXT,
    TIMESTAMP,
    Kind,
    Type,
    list_of,
    map_of,
    record_of,
)

_TIMESTAMP_NAME: Final = "google.protobuf.Timestamp"
_INTEGER_MAX: Final = 2**63 - 1
_YEAR_1_S: Final = -62_135_596_800
_YEAR_10000_S: Final = 253_402_300_800


def declared_type(definition: Mapping[str, Any]) -> Type:
    """The type of the messages; raises FieldsError if the definition is wrong."""
    return _message_type(_descriptor(definition), ())


def decoder(definition: Mapping[str, Any]) -> Callable[[bytes], dict[str, Any]]:
    """Payloads to records; ValueError for what is not a message."""
    from google.protobuf import message, message_factory

    descriptor = _descriptor(definition)
    columns = _message_type(descriptor, ())
    make = message_factory.GetMessageClass(descriptor)

    def decode(payload: bytes) -> dict[str, Any]:
        found = make()
        try:
            found.ParseFromString(payload)
        except message.DecodeError as error:
            raise ValueError(f"not a message of this type: {error}") from None
        return _record(found, columns)

    return decode


def compiled(proto: str) -> str:
    """Descriptors of a source text, in base 64."""
    try:
        from grpc_tools import protoc  # type: ignore[import-untyped]
    except ImportError:
        raise FieldsError("source text needs the package grpcio-tools; give descriptors instead") from None
    well_known = Path(protoc.__file__).parent / "_proto"
    with tempfile.TemporaryDirectory() as folder:
        source, output = Path(folder) / "payload.proto", Path(folder) / "descriptors"
        source.write_text(proto)
        arguments = ["protoc", f"-I{folder}", f"-I{well_known}", "--include_imports", f"--descriptor_set_out={output}"]
        if protoc.main([*arguments, str(source)]) != 0:
            raise FieldsError("protoc cannot compile this source text")
        return base64.b64encode(output.read_bytes()).decode()


def _descriptor(definition: Mapping[str, Any]) -> Any:
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message
    except ImportError:
        raise FieldsError("Protobuf needs the package protobuf") from None
    descriptors, proto = definition.get("descriptors"), definition.get("proto")
    if (descriptors is None) == (proto is None):
        raise FieldsError("give either proto (source text) or descriptors (base 64)")
    encoded = compiled(str(proto)) if descriptors is None else str(descriptors)
    files = descriptor_pb2.FileDescriptorSet()
    try:
        files.ParseFromString(base64.b64decode(encoded, validate=True))
        pool = descriptor_pool.DescriptorPool()
        for file in files.file:
            pool.Add(file)  # imports stand before those who import them
    except (binascii.Error, message.DecodeError, TypeError, ValueError) as error:
        raise FieldsError(f"these are not descriptors: {error}") from None
    name = definition.get("message")
    try:
        return pool.FindMessageTypeByName(str(name))
    except KeyError:
        known = ", ".join(sorted(_message_names(files)))
        raise FieldsError(f"there is no message {name}; there are {known}") from None


def _message_names(files: Any) -> list[str]:
    names = []
    for file in files.file:
        names += [f"{file.package}.{found.name}".lstrip(".") for found in file.message_type]
    return names


def _message_type(descriptor: Any, inside: tuple[str, ...]) -> Type:
    if descriptor.full_name in inside:
        raise FieldsError(f"{descriptor.full_name} holds itself, and a table cannot")
    if len(inside) > DEPTH_MAX:
        raise FieldsError(f"more than {DEPTH_MAX} messages inside each other")
    if not descriptor.fields:
        raise FieldsError(f"the message {descriptor.full_name} has no fields")
    inside = (*inside, descriptor.full_name)
    return record_of((field.name, _field_type(field, inside)) for field in descriptor.fields)


def _field_type(field: Any, inside: tuple[str, ...]) -> Type:
    if _is_map(field):
        entry = field.message_type.fields_by_name
        return map_of(_single_type(entry["value"], inside))
    single = _single_type(field, inside)
    return list_of(single) if field.is_repeated else single


def _single_type(field: Any, inside: tuple[str, ...]) -> Type:
    if field.message_type is not None:
        timestamp = field.message_type.full_name == _TIMESTAMP_NAME
        return TIMESTAMP if timestamp else _message_type(field.message_type, inside)
    kinds = {
        field.CPPTYPE_BOOL: BOOLEAN,
        field.CPPTYPE_FLOAT: NUMBER,
        field.CPPTYPE_DOUBLE: NUMBER,
        field.CPPTYPE_ENUM: TEXT,
        field.CPPTYPE_STRING: BYTES if field.type == field.TYPE_BYTES else TEXT,
    }
    return kinds.get(field.cpp_type, INTEGER)


def _is_map(field: Any) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _record(message: Any, type: Type) -> dict[str, Any]:
    fields = message.DESCRIPTOR.fields_by_name
    return {name: _field(message, fields[name], column) for name, column in type.fields}


def _field(message: Any, field: Any, type: Type) -> Any:
    if field.has_presence and not message.HasField(field.name):
        return None
    value = getattr(message, field.name)
    if type.kind is Kind.MAP:
        assert type.element is not None
        entry = field.message_type.fields_by_name["value"]
        return [(str(key), _single(value[key], entry, type.element)) for key in value]
    if type.kind is Kind.LIST:
        assert type.element is not None
        return [_single(item, field, type.element) for item in value]
    return _single(value, field, type)


def _single(value: Any, field: Any, type: Type) -> Any:
    if type.kind is Kind.TIMESTAMP:
        inside = _YEAR_1_S <= value.seconds < _YEAR_10000_S
        return value.seconds * 1_000_000 + value.nanos // 1_000 if inside else None
    if type.kind is Kind.RECORD:
        return _record(value, type)
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return str(value) if known is None else known.name
    if type.kind is Kind.INTEGER:
        return value if value <= _INTEGER_MAX else None  # uint64: Spark has no such type
    return value
