"""The `page` fixture itself: it detects errors and requests and sends clicks and keys."""

from pathlib import Path


def write(folder: Path, body: str) -> Path:
    file = folder / "page.html"
    file.write_text(f"<!doctype html><meta charset='utf-8'><title>t</title><link rel='icon' href='data:,'>{body}")
    return file


def test_page_fixture_sends_clicks_and_keys(page, tmp_path):
    script = "document.body.onkeydown = e => { document.querySelector('p').innerText += e.key + e.code + ';' }"
    page.open(
        write(tmp_path, f"<button onclick='this.innerText=event.offsetX'>go</button><p></p><script>{script}</script>")
    )
    page.click("button")
    assert float(page.texts("button")[0]) > 1
    page.press("ArrowRight")
    page.press("Space")
    page.press("a")
    assert page.texts("p") == ["ArrowRightArrowRight; Space;aKeyA;"]


def test_page_fixture_reports_errors_and_requests(browser, page, tmp_path):
    other = type(page)(browser)
    other.open(
        write(
            tmp_path,
            "<script>console.error('one'); fetch('http://example.invalid/x').catch(e => 0); no_such()</script>",
        )
    )
    other.wait_for("true")
    complaints = " ".join(other.complaints())
    assert "one" in complaints and "no_such" in complaints
    assert other.fetched() == ["http://example.invalid/x"]
    other.close()


def test_page_fixture_takes_screenshot_of_element(page, tmp_path):
    page.open(write(tmp_path, "<div style='width:300px;height:2000px;background:#123456'></div>"))
    data = page.screenshot(tmp_path / "shot.png", "div").read_bytes()
    assert data.startswith(b"\x89PNG") and (int.from_bytes(data[16:20]), int.from_bytes(data[20:24])) == (300, 2000)


def test_page_fixture_finds_layout_flaws(page, tmp_path):
    body = """<body style='background: #fff; color: #000; margin: 9px'>
<p style='font-size: 9px'>tiny</p><p style='color: #bbb'>faint</p><p>good</p><div style='width: 3000px'>wide</div>
<div style='width: 60px; overflow: auto'>unbreakablewordthatislong</div>
<div style='position: relative'>below<span style='position: absolute; left: 3px'>on top</span></div></body>"""
    page.open(write(tmp_path, body))
    flaws = page.flaws()
    for expected in (
        "page is 3009 px wide",
        "scrolls sideways",
        "9.0 px: tiny",
        "contrast 1.9: faint",
        "“below” overlaps “on top”",
    ):
        assert any(expected in flaw for flaw in flaws), expected
    assert not any("good" in flaw for flaw in flaws)
