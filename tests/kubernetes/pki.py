"""Makes keys and certificates for a test's Kubernetes, with `openssl`."""

from __future__ import annotations

import subprocess
from pathlib import Path

DAYS = "2"
CURVE = ("ecparam", "-name", "prime256v1", "-genkey", "-noout")


class Authority:
    """A certificate authority. Its files are `<name>.crt` and `<name>.key` in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(mode=0o700, parents=True)
        _openssl(*CURVE, "-out", self.key("ca"))
        _openssl(
            *("req", "-x509", "-new", "-key", self.key("ca"), "-subj", "/CN=tests"),
            *("-days", DAYS, "-out", self.certificate("ca")),
            *("-addext", "keyUsage=critical,keyCertSign,digitalSignature"),
        )

    def key(self, name: str) -> Path:
        """The path of a private key."""
        return self.folder / f"{name}.key"

    def certificate(self, name: str) -> Path:
        """The path of a certificate."""
        return self.folder / f"{name}.crt"

    def issue(self, name: str, subject: str, *, usage: str, names: tuple[str, ...] = ()) -> None:
        """Makes a key and signs its certificate.

        `subject` is written as `/O=group/CN=user`, `usage` is `serverAuth` or `clientAuth`, and
        `names` are alternative ones as openssl writes them: `IP:127.0.0.1`, `DNS:localhost`.
        """
        request, extensions = self.folder / f"{name}.csr", self.folder / f"{name}.ext"
        lines = ["keyUsage=digitalSignature", f"extendedKeyUsage={usage}"]
        if names:
            lines.append(f"subjectAltName={','.join(names)}")
        extensions.write_text("\n".join(lines))
        _openssl(*CURVE, "-out", self.key(name))
        _openssl("req", "-new", "-key", self.key(name), "-subj", subject, "-out", request)
        _openssl(
            *("x509", "-req", "-in", request, "-days", DAYS, "-extfile", extensions),
            *("-CA", self.certificate("ca"), "-CAkey", self.key("ca"), "-CAcreateserial"),
            *("-out", self.certificate(name)),
        )

    def make_signing_key(self, name: str) -> None:
        """Makes a pair of keys without a certificate: `<name>.key` and `<name>.pub`."""
        _openssl(*CURVE, "-out", self.key(name))
        public = self.folder / f"{name}.pub"
        _openssl("ec", "-in", self.key(name), "-pubout", "-out", public)


def _openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)
