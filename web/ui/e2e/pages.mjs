// Opens every page in both themes and at two widths, looks for what keeps people out, and takes pictures.
import assert from 'node:assert/strict'
import {mkdirSync} from 'node:fs'
import {join} from 'node:path'
import {start} from '../mock/server.mjs'
import {launch, open, serious} from './browser.mjs'
import {places} from './places.mjs'

const pictures = join(import.meta.dirname, 'screenshots')
const widths = [1280, 390]
const themes = ['light', 'dark']

export async function pages({only = ''} = {}) {
  mkdirSync(pictures, {recursive: true})
  const browser = await launch()
  const faults = []
  try {
    const mock = await start({})
    const of = (model) => [...mock.world.replicas.keys()].find((id) => id.startsWith(model))
    const all = places.map(([name, path, text]) => [name, path.replace('DIGITS', of('digits-svm')).replace('SCANS', of('scans-3')), text])
    for (const theme of themes) {
      for (const width of widths) {
        for (const [name, path, text] of all) {
          if (only && name !== only) continue
          faults.push(...(await look(browser, mock.url, {name, path, text, theme, width})))
        }
      }
    }
    mock.stop()
    if (!only) faults.push(...(await others(browser)))
  } finally {
    await browser.close()
  }
  assert.deepEqual(faults, [])
}

// The pages of systems that are not as usual: without anything, and with keys.
async function others(browser) {
  const faults = []
  const empty = await start({size: 'empty', mode: 'local'})
  const secured = await start({secured: true})
  for (const theme of themes) {
    for (const width of widths) {
      faults.push(...(await look(browser, empty.url, {name: 'first-start', path: '/ui/', text: 'Deploy your first model', theme, width})))
      faults.push(...(await look(browser, secured.url, {name: 'sign-in', path: '/ui/', text: 'Sign in to Topsail', theme, width})))
      for (const [name, path, text] of [
        ['models', '/ui/models', 'There are no models yet'],
        ['replicas', '/ui/replicas', 'No replica runs'],
        ['streams', '/ui/streams', 'No stream has been served'],
        ['usage', '/ui/usage', 'There are no apps yet'],
        ['scaling', '/ui/scaling', 'nothing to scale'],
        ['audit', '/ui/audit', 'No change matches'],
      ]) {
        faults.push(...(await look(browser, empty.url, {name: `empty-${name}`, path, text, theme, width})))
      }
    }
  }
  empty.stop()
  secured.stop()
  return faults
}

async function look(browser, base, {name, path, text, theme, width}) {
  const {context, page, wrong} = await open(browser, base, {width, theme, height: width < 600 ? 844 : 900})
  const where = `${name}-${width}-${theme}`
  try {
    await page.goto(base + path)
    await page.getByText(text).first().waitFor({state: 'attached', timeout: 10_000})
    await page.waitForTimeout(Number(process.env.SETTLE ?? 250)) // so that charts are in the picture
    await page.screenshot({path: join(pictures, `${where}.png`), fullPage: true})
    const faults = [...wrong, ...(await serious(page))]
    const tooWide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
    if (tooWide > 0) faults.push(`the page is ${tooWide} px wider than its window`)
    const small = await page.evaluate(() =>
      [...document.querySelectorAll('button, select, input:not([type=checkbox], [type=radio]), summary')]
        .filter((node) => node.checkVisibility())
        .map((node) => ({box: node.getBoundingClientRect(), label: node.textContent || node.id}))
        .filter(({box}) => box.height < 24 || box.width < 24)
        .map(({box, label}) => `${label.trim()} is ${Math.round(box.width)}×${Math.round(box.height)} px`),
    )
    faults.push(...small)
    return faults.map((fault) => `${where}: ${fault}`)
  } catch (err) {
    await page.screenshot({path: join(pictures, `${where}-FAILED.png`), fullPage: true}).catch(() => {})
    return [`${where}: ${err.message}`, ...wrong]
  } finally {
    await context.close()
  }
}

if (process.argv[1] === import.meta.filename) await pages({only: process.argv[2]})
