(function () {
  "use strict";
  document.querySelectorAll("svg.timeline").forEach(function (svg) {
    var detail = svg.parentNode.parentNode.querySelector(".detail");
    var ops = Array.prototype.slice.call(svg.querySelectorAll(".op"));
    var buffers = Array.prototype.slice.call(svg.querySelectorAll(".buffer"));
    var full = svg.getAttribute("viewBox"), chosen = null;
    function words(node, name) { return (node.getAttribute(name) || "").split("|").filter(Boolean); }
    function related(node) {
      var mine = words(node, "data-reads").concat(words(node, "data-writes"));
      return function (other) {
        return other.getAttribute("data-id") === node.getAttribute("data-id") ||
          words(other, "data-reads").concat(words(other, "data-writes")).some(function (b) { return mine.indexOf(b) >= 0; });
      };
    }
    function show(node) {
      var near = node && related(node);
      var mine = node ? words(node, "data-reads").concat(words(node, "data-writes")) : [];
      ops.forEach(function (o) {
        o.classList.toggle("dim", !!node && !near(o));
        o.classList.toggle("sel", !!node && o.getAttribute("data-id") === node.getAttribute("data-id"));
      });
      buffers.forEach(function (b) { b.classList.toggle("sel", mine.indexOf(b.getAttribute("data-buffer")) >= 0); });
      if (detail && node) { detail.textContent = node.querySelector("title").textContent; }
    }
    ops.forEach(function (o) {
      o.addEventListener("mouseenter", function () { if (!chosen) { show(o); } });
      o.addEventListener("mouseleave", function () { if (!chosen) { show(null); } });
      o.addEventListener("click", function (e) { chosen = chosen === o ? null : o; show(chosen); e.stopPropagation(); });
    });
    svg.addEventListener("click", function () { chosen = null; show(null); });
    svg.addEventListener("dblclick", function () { svg.setAttribute("viewBox", full); });
    svg.addEventListener("wheel", function (e) {
      if (!e.ctrlKey && !e.shiftKey) { return; }
      e.preventDefault();
      var v = svg.getAttribute("viewBox").split(" ").map(Number), w = Number(full.split(" ")[2]);
      var box = svg.getBoundingClientRect(), at = v[0] + v[2] * (e.clientX - box.left) / box.width;
      var next = Math.min(w, Math.max(w / 200, v[2] * ((e.deltaY || e.deltaX) > 0 ? 1.25 : 0.8)));
      var left = Math.min(Math.max(0, at - (at - v[0]) * next / v[2]), w - next);
      svg.setAttribute("viewBox", [left, v[1], next, v[3]].join(" "));
      svg.setAttribute("preserveAspectRatio", "none");
    }, { passive: false });
  });
  document.querySelectorAll("button[data-copy]").forEach(function (b) {
    b.addEventListener("click", function () {
      var text = document.getElementById(b.getAttribute("data-copy")).textContent;
      if (navigator.clipboard) { navigator.clipboard.writeText(text); b.textContent = "copied"; }
    });
  });
})();
