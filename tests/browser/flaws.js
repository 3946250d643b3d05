/* Return visible layout flaws: text that is too small, faint or overlapping, and horizontal scrolling. */
(() => {
  const flaws = [];
  const SEEN = { visibilityProperty: true, opacityProperty: true };
  const name = (text) => text.trim().replace(/\s+/g, " ").slice(0, 40);
  const rgb = (color) => (color.match(/[\d.]+/g) || [0, 0, 0, 0]).map(Number);
  const light = (color) => {
    const [r, g, b] = color.map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (node) => {
    for (; node; node = node.parentElement) {
      const color = rgb(getComputedStyle(node).backgroundColor);
      if (color.length < 4 || color[3] > 0.5) return color;
    }
    return rgb(getComputedStyle(document.documentElement).colorScheme.includes("dark") ? "rgb(0,0,0)" : "rgb(255,255,255)");
  };
  const shown = (box, node) => {
    let [left, top, right, bottom] = [Math.max(box.left, 0), box.top, Math.min(box.right, innerWidth), box.bottom];
    for (; node && node !== document.body; node = node.parentElement) {
      if (getComputedStyle(node).overflow === "visible") continue;
      const frame = node.getBoundingClientRect();
      [left, top] = [Math.max(left, frame.left), Math.max(top, frame.top)];
      [right, bottom] = [Math.min(right, frame.right), Math.min(bottom, frame.bottom)];
    }
    return { left, top, right, bottom, width: right - left, height: bottom - top };
  };
  if (document.documentElement.scrollWidth > innerWidth) flaws.push(`page is ${document.documentElement.scrollWidth} px wide`);
  for (const node of document.querySelectorAll("body *")) {
    const { overflowX } = getComputedStyle(node);
    if (/auto|scroll/.test(overflowX) && node.scrollWidth > node.clientWidth + 1 && node.checkVisibility(SEEN)) {
      flaws.push(`<${node.tagName.toLowerCase()} class="${node.className}"> scrolls sideways`);
    }
  }
  const boxes = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode;
    const parent = text.parentElement;
    if (!text.data.trim() || parent.closest("script, style, noscript, option, iframe, defs, title")) continue;
    if (!parent.checkVisibility(SEEN)) continue;
    const style = getComputedStyle(parent);
    const scale = parent.getScreenCTM ? Math.hypot(parent.getScreenCTM().a, parent.getScreenCTM().b) : 1;
    const size = parseFloat(style.fontSize) * scale;
    if (size < 10.9) flaws.push(`${size.toFixed(1)} px: ${name(text.data)}`);
    const ink = rgb(parent.getScreenCTM ? style.fill : style.color);
    const [dark, bright] = [light(ink), light(ground(parent))].sort((one, other) => one - other);
    if (!parent.closest(".xg-past") && (bright + 0.05) / (dark + 0.05) < 4.4) {
      flaws.push(`contrast ${((bright + 0.05) / (dark + 0.05)).toFixed(1)}: ${name(text.data)}`);
    }
    const range = document.createRange();
    range.selectNodeContents(text);
    for (const whole of parent.getScreenCTM ? [parent.getBoundingClientRect()] : range.getClientRects()) {
      const box = shown(whole, parent);
      if (box.width > 1 && box.height > 1) boxes.push({ box, parent, text: name(text.data) });
    }
  }
  boxes.sort((one, other) => one.box.top - other.box.top);
  boxes.forEach((one, index) => {
    for (let at = index + 1; at < boxes.length && boxes[at].box.top < one.box.bottom - 3; at++) {
      const other = boxes[at];
      if (one.parent === other.parent || getComputedStyle(one.parent).transform !== "none") continue;
      const across = Math.min(one.box.right, other.box.right) - Math.max(one.box.left, other.box.left);
      const down = Math.min(one.box.bottom, other.box.bottom) - other.box.top;
      if (across > 3 && down > 4) flaws.push(`“${one.text}” overlaps “${other.text}”`);
    }
  });
  return flaws.slice(0, 20);
})();
