/* A Worker for pages opened from disk, where browsers allow none: the script runs in an invisible frame instead.
   Material for MkDocs searches with it. Frames of file: pages may talk to each other by messages alone. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      const source = new URL(url, location.href).href;
      this.frame.srcdoc = `<!doctype html><script>
        self.postMessage = (data) => parent.dispatchEvent(new CustomEvent("frame-worker", { detail: data }));
        self.importScripts = (...urls) => Promise.all(urls.map((url) => new Promise((done) => {
          document.head.append(Object.assign(document.createElement("script"), { src: url, onload: done }));
        })));
        <\/script><script src="${source}"><\/script>`;
      addEventListener("frame-worker", (event) => {
        const message = new MessageEvent("message", { data: event.detail });
        this.dispatchEvent(message);
        if (this.onmessage) this.onmessage(message);
      });
      this.frame.onload = () => {
        this.isReady = true;
        this.waiting.splice(0).forEach((data) => this.postMessage(data));
      };
      addEventListener("DOMContentLoaded", () => document.body.append(this.frame));
      if (document.body) document.body.append(this.frame);
    }
    postMessage(data) {
      if (!this.isReady) return void this.waiting.push(data);
      this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }));
    }
    terminate() {
      this.frame.remove();
    }
  };
}
