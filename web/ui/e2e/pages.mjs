// Opens every page, looks for what keeps people out, and takes pictures.
import assert from 'node:assert/strict'
import {mkdirSync} from 'node:fs'
import {join} from 'node:path'
import {start} from '../mock/server.mjs'
import {launch, open, serious, settled} from './browser.mjs'
import {places} from './places.mjs'

const pictures = join(import.meta.dirname, 'screenshots')
const widths = [1280, 390]
const themes = ['light', 'dark']

const looks = themes.flatMap((theme) => widths.map((width) => ({theme, width})))

// pages opens every page in both themes and at both widths.
export const pages = ({only = ''} = {}) => visit(() => looks, only)

// walk opens every page once, each in another theme or at another width than the one before.
export const walk = () => visit((i) => [looks[i % looks.length]])

async function visit(looksOf, only = '') {
  mkdirSync(pictures, {recursive: true})
  const browser = await launch()
  const faults = []
  const [usual, empty, secured] = await Promise.all([start({}), start({size: 'empty', mode: 'local'}), start({secured: true})])
  try {
    for (const [i, [system, name, path, text]] of all(usual, empty, secured).entries()) {
      if (only && name !== only) continue
      for (const {theme, width} of looksOf(i)) faults.push(...(await look(browser, system.url, {name, path, text, theme, width})))
    }
  } finally {
    await browser.close()
    for (const system of [usual, empty, secured]) system.stop()
  }
  assert.deepEqual(faults, [])
}

// all are the pages of a usual system, and those of systems without anything, and with keys.
function all(usual, empty, secured) {
  const of = (model) => [...usual.world.replicas.keys()].find((id) => id.startsWith(model))
  const filled = (path) => path.replace('DIGITS', of('digits-svm')).replace('SCANS', of('scans-3'))
  return [
    ...places.map(([name, path, text]) => [usual, name, filled(path), text]),
    [empty, 'first-start', '/ui/', 'Deploy your first model'],
    [secured, 'sign-in', '/ui/', 'Sign in to Topsail'],
    [empty, 'empty-models', '/ui/models', 'There are no models yet'],
    [empty, 'empty-replicas', '/ui/replicas', 'No replica runs'],
    [empty, 'empty-streams', '/ui/streams', 'No stream has been served'],
    [empty, 'empty-usage', '/ui/usage', 'There are no apps yet'],
    [empty, 'empty-scaling', '/ui/scaling', 'nothing to scale'],
    [empty, 'empty-audit', '/ui/audit', 'No change matches'],
  ]
}

async function look(browser, base, {name, path, text, theme, width}) {
  const {context, page, wrong} = await open(browser, base, {width, theme, height: width < 600 ? 844 : 900})
  const where = `${name}-${width}-${theme}`
  try {
    await page.goto(base + path)
    await page.getByText(text).first().waitFor({state: 'attached'})
    await settled(page) // so that charts are in the picture
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
