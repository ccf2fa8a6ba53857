// A Chromium to look at pages with. CHROMIUM names another one.
import assert from 'node:assert/strict'
import {readFileSync} from 'node:fs'
import {createRequire} from 'node:module'
import {setTimeout as pause} from 'node:timers/promises'
import {chromium} from 'playwright-core'

// patience is the limit of every wait, in milliseconds. It ends what hangs, and says nothing about what is slow.
export const patience = 60_000

const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

export async function launch() {
  return chromium.launch({executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--disable-dev-shm-usage']})
}

// open makes a page that collects what goes wrong in it: errors, breaches of the content policy, and requests to other hosts.
export async function open(browser, base, {width = 1280, height = 900, theme = 'light', key} = {}) {
  const context = await browser.newContext({viewport: {width, height}, colorScheme: theme, reducedMotion: 'reduce', acceptDownloads: true})
  context.setDefaultTimeout(patience)
  const page = await context.newPage()
  follow(page)
  const wrong = []
  page.on('pageerror', (err) => wrong.push(`error: ${err.message}`))
  page.on('console', (message) => {
    if (message.type() === 'error' && !/Failed to load resource|ERR_/.test(message.text())) wrong.push(`console: ${message.text()}`)
  })
  page.on('request', (request) => {
    const url = new URL(request.url())
    if (/^https?:$/.test(url.protocol) && url.origin !== new URL(base).origin) wrong.push(`request to another host: ${request.url()}`)
  })
  if (key) {
    const answer = await context.request.post(base + '/api/v1/session', {data: {key}})
    if (!answer.ok()) throw new Error(`Cannot sign in: ${answer.status()}`)
  }
  return {context, page, wrong}
}

const asked = new WeakMap() // what a page waits for

function follow(page) {
  const requests = new Set()
  asked.set(page, requests)
  page.on('request', (request) => !endless(request) && requests.add(request))
  for (const end of ['requestfinished', 'requestfailed']) page.on(end, (request) => requests.delete(request))
}

const endless = (request) => request.resourceType() === 'eventsource' || /\/logs\?/.test(request.url())

// settled waits until all that a page has asked for is there and drawn.
export async function settled(page) {
  await eventually('the page is whole', async () => {
    if (asked.get(page).size > 0) return false
    await drawn(page)
    return asked.get(page).size === 0 && (await page.locator('.loading').count()) === 0
  })
  await drawn(page)
}

// drawn waits for two frames, in the second of which all is seen that was done before.
export function drawn(page) {
  return page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done()))))
}

// eventually waits until something is so.
export async function eventually(what, so) {
  for (const end = Date.now() + patience; !(await so()); await pause(20)) assert.ok(Date.now() < end, `not so: ${what}`)
}

// serious lists what axe finds that keeps people out. axe itself is put in past the content policy, by the browser and not by the page.
export async function serious(page) {
  await page.evaluate(axeSource)
  const {violations} = await page.evaluate(() =>
    globalThis.axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']}),
  )
  return violations
    .filter(({impact}) => impact === 'serious' || impact === 'critical')
    .map(
      ({id, nodes}) =>
        `${id}: ${nodes
          .slice(0, 3)
          .map((node) => `${node.target.join(' ')} – ${node.any[0]?.message ?? node.failureSummary}`)
          .join(' | ')}`,
    )
}
