"""A person's browser without a screen, behind a proxy that ends TLS: cookies, forms, redirects."""

from __future__ import annotations

import http.client
import re
from dataclasses import dataclass, field
from html import unescape
from urllib.parse import urlencode, urlsplit

_FIELD = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')


@dataclass
class Answer:
    status: int
    headers: http.client.HTTPMessage
    text: str


@dataclass
class HttpBrowser:
    """public: what stands in the address bar. address, port: where the proxy reaches the server."""

    public: str
    address: str
    port: int
    client: str = "192.0.2.44"
    cookies: dict[str, str] = field(default_factory=dict)
    page: str = ""
    at: str = "/"

    def get(self, path: str) -> Answer:
        answer = self._follow(self._ask("GET", path), path)
        self.page = answer.text
        return answer

    def post(self, path: str, **fields: str) -> Answer:
        """A form of the page that is open, sent."""
        token = _FIELD.search(self.page)
        assert token, f"no form on {self.at}"
        body = urlencode({"csrfmiddlewaretoken": token[1], **fields})
        answer = self._follow(self._ask("POST", path, body), path)
        self.page = answer.text
        return answer

    def shows(self, text: str) -> bool:
        return text in unescape(self.page)

    def _follow(self, answer: Answer, path: str) -> Answer:
        self.at = path
        for _ in range(5):
            if answer.status not in (301, 302, 303):
                return answer
            self.at = urlsplit(answer.headers["Location"]).path
            answer = self._ask("GET", self.at)
        raise AssertionError(f"{path} leads in a circle")

    def _ask(self, method: str, path: str, body: str | None = None) -> Answer:
        parts = urlsplit(self.public)
        headers = {
            "Host": parts.netloc,
            "X-Forwarded-Proto": parts.scheme,
            "X-Forwarded-For": self.client,
            "Referer": f"{self.public}/",
            "Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items()),
        }
        if body is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        connection = http.client.HTTPConnection(self.address, self.port, timeout=30)
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            answer = Answer(response.status, response.headers, response.read().decode())
        finally:
            connection.close()
        for line in answer.headers.get_all("Set-Cookie") or ():
            name, _, value = line.partition(";")[0].partition("=")
            self.cookies[name] = value
        return answer
