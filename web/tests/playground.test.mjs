/** The playground's editor: coloured, usable by keyboard, and loaded where it is needed only. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launch, openPage } from "./lib/chromium.mjs";
import { startCoordinator } from "./lib/coordinator.mjs";
import { startFront } from "./lib/front.mjs";

let coordinator;
let front;
let browser;

before(async () => {
  [coordinator, browser] = await Promise.all([startCoordinator(), launch()]);
  front = await startFront(coordinator);
});

after(async () => {
  await browser?.close();
  await front?.close();
  await coordinator?.close();
});

/** The page, its editor, and what the browser complained about. */
async function open(t, prepare = async () => {}) {
  const context = await browser.newContext();
  t.after(() => context.close());
  const page = await openPage(context, "about:blank");
  const complaints = [];
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  await prepare(page);
  await page.goto(`${front.url}/playground#key=${front.key}`);
  return { page, complaints, editor: page.getByRole("textbox", { name: "WGSL kernel" }) };
}

const coloured = (page) => page.locator(".code .cm-line span").first().waitFor();

test("kernels are coloured, under the page's policy, and only here", async (t) => {
  const { page, complaints, editor } = await open(t);
  await coloured(page);
  const colours = await page.locator(".code .cm-line span").evaluateAll((words) =>
    Object.fromEntries(words.map((word) => [word.textContent, getComputedStyle(word).color])),
  );
  assert.ok(new Set(["fn", "f32", "64", "@compute"].map((word) => colours[word])).size === 4, JSON.stringify(colours));
  assert.ok(await editor.evaluate((content) => getComputedStyle(content).whiteSpace === "pre"), "its own styles hold");
  assert.deepEqual(complaints, []);

  front.served.clear();
  const other = await openPage(page.context(), `${front.url}/#key=${front.key}`);
  await other.getByRole("heading", { name: "Invite a device" }).waitFor();
  await other.goto(front.joinLink);
  await other.getByRole("button", { name: "Lend this device" }).waitFor();
  assert.equal(front.served.has("/assets/editor.js"), false);
});

test("Tab indents; Escape and then Tab leaves, also backwards", async (t) => {
  const { page, editor } = await open(t);
  await coloured(page);
  const focused = () => editor.evaluate((content) => content.getRootNode().activeElement === content);
  const text = async () => (await editor.innerText()).split("\n")[0];
  await editor.focus();
  await page.keyboard.press("Control+Home");
  const before = await text();
  await page.keyboard.press("Tab");
  assert.equal(await text(), `    ${before}`);
  assert.equal(await focused(), true);
  await page.keyboard.press("Escape");
  await page.keyboard.press("Tab");
  assert.equal(await focused(), false);
  await page.keyboard.press("Shift+Tab");
  assert.equal(await focused(), true);
  await page.keyboard.press("Escape");
  await page.keyboard.press("Shift+Tab");
  assert.equal(await focused(), false);
});

test("a refused kernel has its line marked until it is changed", async (t) => {
  const { page, editor } = await open(t);
  await coloured(page);
  await editor.focus();
  await page.keyboard.press("Control+End");
  await page.keyboard.type("\nfn broken() { let x = nothing; }");
  const last = await page.locator(".code .cm-lineNumbers .cm-gutterElement").last().innerText();
  await page.keyboard.press("Control+Enter");
  await page.locator(".failure", { hasText: "nothing" }).waitFor();
  await page.locator(".code .cm-line.bad-line", { hasText: "fn broken" }).waitFor();
  assert.equal(await page.locator(".code .cm-gutterElement.bad-line").innerText(), last);
  assert.equal(await editor.getAttribute("aria-invalid"), "true");
  await page.keyboard.type(" ");
  await page.locator(".code .bad-line").first().waitFor({ state: "detached" });
  assert.equal(await editor.getAttribute("aria-invalid"), "false");
});

test("a sample replaces the text", async (t) => {
  const { page, editor } = await open(t);
  await coloured(page);
  const sample = page.getByLabel("Start from a sample");
  await sample.selectOption("Saxpy: two inputs");
  await editor.filter({ hasText: "params.a * x" }).waitFor();
  await sample.selectOption("Wave: one number in, one out");
  await editor.filter({ hasText: "fn wave" }).waitFor();
});

test("without the editor's file a plain field does", async (t) => {
  const { page, editor } = await open(t, (page) => page.route("**/assets/editor.js", (route) => route.abort()));
  assert.equal(await editor.evaluate((area) => area.localName), "textarea");
  await editor.fill("fn broken() { let x = nothing; }");
  await page.keyboard.press("Control+Enter");
  await page.locator(".failure", { hasText: "nothing" }).waitFor();
});
