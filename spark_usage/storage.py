"""Reads and writes files of a run that are no tables, through Hadoop, so that folders and S3A work
alike."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from spark_usage.errors import JobError


def literal_path(path: str) -> str:
    """A path to read tables from, with characters escaped that Spark takes for a pattern."""
    return "".join(f"\\{character}" if character in "{}[]*?\\" else character for character in path)


class Storage:
    """Reads and writes small files by path or URI."""

    def __init__(self, spark: SparkSession) -> None:
        context = spark.sparkContext
        self._jvm: Any = context._jvm
        self._configuration: Any = context._jsc.hadoopConfiguration()

    def exists(self, path: str) -> bool:
        """Whether there is a file or a folder at a path."""
        files, place = self._open_path(path)
        return bool(files.exists(place))

    def sizes(self, folder: str) -> dict[str, int]:
        """The size in bytes of each file in a folder, by name; empty where there is no folder."""
        files, place = self._open_path(folder)
        if not files.exists(place):
            return {}
        return {
            str(status.getPath().getName()): int(status.getLen())
            for status in files.listStatus(place)
            if status.isFile()
        }

    def read(self, path: str) -> bytes:
        """A file's content. Raises `JobError` where there is no file."""
        files, place = self._open_path(path)
        if not files.exists(place):
            message = f"there is no file {path}"
            raise JobError(message)
        stream = files.open(place)
        try:
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
        finally:
            stream.close()

    def make_folder(self, path: str) -> None:
        """Makes a new folder. Raises `JobError` where the path exists."""
        files, place = self._open_path(path)
        if files.exists(place):
            message = f"{path} exists: every run has an output folder of its own"
            raise JobError(message)
        files.mkdirs(place)

    def write(self, path: str, data: bytes) -> None:
        """Writes a new file, by a temporary one, so that no reader sees a part of it.

        Raises `JobError` where the path exists.
        """
        files, place = self._open_path(path)
        _, unfinished = self._open_path(f"{path}.unfinished")
        stream = files.create(unfinished, False)
        try:
            stream.write(data)
        finally:
            stream.close()
        if files.exists(place) or not files.rename(unfinished, place):
            message = f"{path} exists"
            raise JobError(message)

    def _open_path(self, path: str) -> tuple[Any, Any]:
        place = self._jvm.org.apache.hadoop.fs.Path(path)
        files = place.getFileSystem(self._configuration)
        # Without Hadoop's own checksum files beside each file: the report has SHA-256.
        files.setWriteChecksum(False)
        return files, place
