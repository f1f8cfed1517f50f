"""The tiny study's report in a real browser, from its file and without network: no error, and everything shows."""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
PATIENCE = 60  # seconds for one answer, on a machine that does other work

# What the eye beside a result does when it is clicked; a result that is only for download gives its content's size.
OPEN = """
(async () => {
    const view = new ButtonViewManager(app).handleSelectedResult(%s).props;
    if (view.onClick) { view.onClick(); return -1; }
    return (await (await fetch(view.href)).arrayBuffer()).byteLength;
})()
"""
IMAGE = """
(async () => {
    const wanted = results[%s].data_uri;
    const image = [...document.querySelectorAll("#app img")].find(image => image.getAttribute("src") === wanted);
    if (!image) return null;
    await image.decode();
    const box = image.getBoundingClientRect();
    return [image.naturalWidth, image.naturalHeight, box.width, box.height];
})()
"""
PAGE = """
(() => {
    const style = getComputedStyle(document.body);
    return {title: document.title, letters: document.body.innerText.length, ink: style.color,
            ground: style.backgroundColor, foreign: document.querySelectorAll("script, link, img, iframe").length};
})()
"""


class Browser:
    """A headless chromium, spoken to in its DevTools protocol through a pipe, so that no port is opened."""

    def __init__(self, program: str, profile: Path) -> None:
        theirs_in, self._out = _high(os.pipe())
        self._in, theirs_out = _high(os.pipe())
        # Chromium expects the pipe's ends at these numbers. Network is refused: a report is whole in itself.
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
        flags += [f"--user-data-dir={profile}", "--remote-debugging-pipe", "--host-resolver-rules=MAP * ~NOTFOUND"]
        command = ["bash", "-c", f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}', "chromium", program, *flags]
        self.log = profile.with_suffix(".log")
        with open(self.log, "wb") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=(theirs_in, theirs_out)
            )
        os.close(theirs_in)
        os.close(theirs_out)
        self.events: list[dict[str, Any]] = []
        self._unread, self._number, self._session = b"", 0, None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Runtime", "Log", "Page"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        message |= {"sessionId": self._session} if self._session else {}
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while (answer := self._read()).get("id") != self._number:
            self.events.append(answer)
        assert "error" not in answer, f"{method}: {answer['error']}"
        return answer["result"]

    def evaluate(self, expression: str, **where: Any) -> Any:
        """The value of an expression in the page, or in the frame that ``contextId`` names."""
        wanted = {"returnByValue": True, "awaitPromise": True} | where
        answer = self.call("Runtime.evaluate", expression=expression, **wanted)
        assert "exceptionDetails" not in answer, f"{expression}: {answer['exceptionDetails']}"
        return answer["result"].get("value")

    def until(self, expression: str) -> Any:
        """The first value of an expression that is neither false nor empty."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if value := self.evaluate(expression):
                return value
            time.sleep(0.05)
        pytest.fail(f"nothing came of {expression} within {PATIENCE} s; errors: {self.errors()}; see {self.log}")

    def frame(self) -> int:
        """The newest context of a frame within the page."""
        main = self.call("Page.getFrameTree")["frameTree"]["frame"]["id"]
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            gone = [e["params"]["executionContextId"] for e in self._named("Runtime.executionContextDestroyed")]
            made = [event["params"]["context"] for event in self._named("Runtime.executionContextCreated")]
            inner = [c["id"] for c in made if c["auxData"]["frameId"] != main and c["id"] not in gone]
            if inner and self.evaluate("document.readyState === 'complete' && !!document.body", contextId=inner[-1]):
                return inner[-1]
            time.sleep(0.05)
            self.evaluate("0")  # reads what has happened meanwhile
        pytest.fail(f"no page was shown within {PATIENCE} s; the browser's log is {self.log}")

    def errors(self) -> list[str]:
        """What a person would see in red in the browser's console."""
        thrown = [str(event["params"]["exceptionDetails"]) for event in self._named("Runtime.exceptionThrown")]
        logged = [str(e["params"]) for e in self._named("Runtime.consoleAPICalled") if e["params"]["type"] == "error"]
        entries = [event["params"]["entry"] for event in self._named("Log.entryAdded")]
        return thrown + logged + [str(entry) for entry in entries if entry["level"] == "error"]

    def close(self) -> None:
        self._session = None
        self.call("Browser.close")
        self._process.wait(PATIENCE)
        os.close(self._in)
        os.close(self._out)

    def _named(self, method: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event.get("method") == method]

    def _read(self) -> dict[str, Any]:
        """The next message; they end with a zero byte."""
        while b"\0" not in self._unread:
            ready, _, _ = select.select([self._in], [], [], PATIENCE)
            chunk = os.read(self._in, 2**20) if ready else b""
            if not chunk:
                pytest.fail(f"the browser said nothing more: {self.log.read_text(errors='replace')[-2000:]}")
            self._unread += chunk
        message, self._unread = self._unread.split(b"\0", 1)
        return json.loads(message)


def _high(pipe: tuple[int, int]) -> tuple[int, int]:
    """The same pipe under numbers that the child does not need for its own."""
    moved = tuple(fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in pipe)
    for end in pipe:
        os.close(end)
    return moved


@pytest.fixture(scope="module")
def program() -> str:
    """A chromium. Tests skip where there is none, but not in CI."""
    found = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if found is None:
        reason = f"no browser: none of {', '.join(PROGRAMS)} is installed"
        if os.environ.get("GENACCEL_REQUIRE_BROWSER"):
            pytest.fail(reason)
        pytest.skip(reason)
    return found


@pytest.fixture(scope="module")
def report(program, finished, snakemake, tmp_path_factory) -> Path:
    """The tiny study's report; not made where no browser could open it."""
    path = tmp_path_factory.mktemp("report") / "report of tiny.html"
    snakemake(finished, "--configfile", "tests/config/tiny.yaml", "--report", str(path))
    return path


@pytest.fixture(scope="module")
def browser(program, report, tmp_path_factory) -> Iterator[Browser]:
    """The report, opened and drawn."""
    browser = Browser(program, tmp_path_factory.mktemp("browser") / "profile")
    try:
        browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
        browser.call("Page.navigate", url=report.as_uri())
        browser.until("document.readyState === 'complete' && !!document.querySelector('#app nav, #app button, #app a')")
        yield browser
    finally:
        browser.close()


@pytest.fixture(scope="module")
def results(browser) -> dict[str, str]:
    """Media types of the report's results by path."""
    return browser.evaluate("Object.fromEntries(Object.entries(results).map(([path, r]) => [path, r.mime_type]))")


def test_the_report_lists_every_file_among_the_figures(results, finished):
    made = {path.name for path in (finished / "results/tiny/figures").iterdir()}
    assert {Path(path).name for path in results} == made


def test_every_result_has_a_caption_and_labels(browser):
    bare = browser.evaluate("Object.keys(results).filter(p => !results[p].caption || !results[p].labels)")
    assert bare == []


def test_every_image_is_shown(browser, results):
    images = [path for path, media in results.items() if media.startswith("image/")]
    assert images
    for path in images:
        browser.evaluate(OPEN % json.dumps(path))
        shown = browser.until(IMAGE % json.dumps(path))
        assert min(shown) > 100, f"{path}: {shown}"


def test_every_page_is_shown_and_readable_where_the_browser_is_dark(browser, results):
    pages = [path for path, media in results.items() if media == "text/html"]
    assert {Path(path).name for path in pages} == {"provenance.html", "subjects-simulated.html"}
    for path in pages:
        # Frames of the page before must not be taken for this one's.
        browser.evaluate("app.setView({content: 'stats'})")
        browser.until("!document.querySelector('#app iframe')")
        browser.evaluate(OPEN % json.dumps(path))
        browser.until("!!document.querySelector('#app iframe')")
        page = browser.evaluate(PAGE, contextId=browser.frame())
        assert page["letters"] > 200, f"{path}: {page}"
        assert (page["ink"], page["ground"]) == ("rgb(34, 34, 34)", "rgb(255, 255, 255)")
        assert page["foreign"] == 0, f"{path} is not whole in itself"


def test_every_other_result_can_be_downloaded(browser, results):
    others = [path for path, media in results.items() if not media.startswith("image/") and media != "text/html"]
    assert others
    for path in others:
        assert browser.evaluate(OPEN % json.dumps(path)) > 0, path


def test_nothing_was_an_error(browser):
    assert browser.errors() == []
