// SPDX-License-Identifier: Apache-2.0
// The page's style: colours that are told apart on a light and on a dark ground.
#include "page.hpp"

const char* const harness::page_style = R"css(
:root { color-scheme: light dark; --ground: #ffffff; --raised: #f5f6f8; --ink: #1c2128; --soft: #57606a;
  --rule: #d8dde3; --good: #1a7f37; --bad: #c62828;
  --c0: #1f6fb4; --c1: #d9541e; --c2: #2f8f4e; --c3: #8a4fb5; --c4: #a87b00;
  --c5: #c2387a; --c6: #0f8a97; --c7: #7a5a3a; --c8: #4553c4; --c9: #6b8500; }
@media (prefers-color-scheme: dark) { :root { --ground: #14171c; --raised: #1d2229; --ink: #e4e8ed; --soft: #9aa5b1;
  --rule: #333b45; --good: #56d364; --bad: #ff7b72;
  --c0: #6cb2f0; --c1: #ff8a5c; --c2: #6fd08c; --c3: #c79bf0; --c4: #e0b33c;
  --c5: #f57fb4; --c6: #4fcbd8; --c7: #cba57e; --c8: #96a1ff; --c9: #b4cf4a; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1360px; padding: 20px 24px 60px; background: var(--ground); color: var(--ink);
  font: 14px/1.45 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
h1 { font-size: 24px; margin: 8px 0 4px; }
h2 { font-size: 19px; margin: 34px 0 6px; border-top: 1px solid var(--rule); padding-top: 16px; }
p { margin: 4px 0 8px; color: var(--soft); max-width: 100ch; }
nav a { margin-right: 14px; white-space: nowrap; }
a { color: var(--c0); }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(480px, 1fr)); gap: 14px; }
.charts > svg { width: 100%; height: auto; background: var(--raised); border: 1px solid var(--rule);
  border-radius: 6px; }
svg text { fill: var(--soft); font-size: 12px; }
svg text.title { fill: var(--ink); font-size: 13.5px; font-weight: 600; }
svg .grid { stroke: var(--rule); stroke-width: 1; }
svg polyline { fill: none; stroke: currentColor; stroke-width: 2; stroke-linejoin: round; }
svg circle { fill: currentColor; }
svg .reach { fill: transparent; }
svg .dot:hover circle:first-child { r: 5px; }
svg .dashed polyline { stroke-dasharray: 6 4; stroke-width: 1.7; }
svg .other { color: var(--ink); }
svg .other polyline { stroke-dasharray: 1.5 4; stroke-width: 2.4; stroke-linecap: round; }
svg .limit { color: var(--soft); } svg .limit polyline { stroke-width: 1.2; stroke-dasharray: 12 3 2 3; }
svg .c0 { color: var(--c0); } svg .c1 { color: var(--c1); } svg .c2 { color: var(--c2); } svg .c3 { color: var(--c3); }
svg .c4 { color: var(--c4); } svg .c5 { color: var(--c5); } svg .c6 { color: var(--c6); } svg .c7 { color: var(--c7); }
svg .c8 { color: var(--c8); } svg .c9 { color: var(--c9); }
.legend { list-style: none; margin: 10px 0 6px; padding: 0; display: flex; flex-wrap: wrap; gap: 4px 20px; }
.legend li { white-space: nowrap; } .key { width: 30px; height: 10px; margin-right: 6px; }
details { margin: 8px 0; } summary { cursor: pointer; color: var(--soft); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 12.5px; font-variant-numeric: tabular-nums; }
th, td { padding: 2px 9px; text-align: right; border-bottom: 1px solid var(--rule); white-space: nowrap; }
th { color: var(--soft); font-weight: 600; } td.text, th.text { text-align: left; }
td.bad { color: var(--bad); font-weight: 700; } .good { color: var(--good); } .bad { color: var(--bad); }
table.host td { text-align: left; white-space: normal; } table.host td:first-child { color: var(--soft); }
)css";
