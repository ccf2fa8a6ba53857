// How smooth the pages are with 500 apps and 2,000 replicas while events stream in: frames a second, and the time from
// a click or key to the frame that shows what it did. BASE_URL measures another system than the mock.
import assert from 'node:assert/strict'
import {spawn} from 'node:child_process'
import {join} from 'node:path'
import {launch, open} from './browser.mjs'

const watchedMs = 5000
const leastFrames = 30
const longestMs = 100

export async function speed() {
  assert.deepEqual(await measure(), [], 'too slow, perhaps because of what else runs here')
}

// measure prints what it finds, and returns what is too slow.
async function measure() {
  const mock = process.env.BASE_URL ? {url: process.env.BASE_URL, stop: () => {}} : await large()
  const browser = await launch()
  try {
    const {page, wrong} = await open(browser, mock.url)
    const results = []
    await page.goto(mock.url + '/ui/')
    await page.getByRole('table').locator('tbody tr').nth(20).waitFor()
    results.push(['Overview at rest', await frames(page, () => page.waitForTimeout(watchedMs))])
    results.push(['Overview scrolled', await frames(page, () => scroll(page))])
    const sort = await interactions(page, 'th button', 8)
    const filter = await typing(page, '#filter', 'app-1')
    await page.goto(mock.url + '/ui/replicas')
    await page.getByRole('table').locator('tbody tr').nth(20).waitFor()
    results.push(['Replicas at rest', await frames(page, () => page.waitForTimeout(watchedMs))])
    results.push(['Replicas scrolled', await frames(page, () => scroll(page))])
    const sortReplicas = await interactions(page, 'th button', 8)
    const navigate = await interactions(page, 'nav[aria-label=Pages] a', 5)
    const heap = await page.evaluate(() => Math.round(performance.memory.usedJSHeapSize / 1e6))

    for (const [what, {fps, worst}] of results)
      console.log(`${what}: ${fps.toFixed(0)} frames a second, the longest ${worst.toFixed(0)} ms`)
    const waits = {'sorting apps': sort, filtering: filter, 'sorting replicas': sortReplicas, 'changing page': navigate}
    for (const [what, times] of Object.entries(waits))
      console.log(`${what}: ${median(times).toFixed(0)} ms in the middle, ${Math.max(...times).toFixed(0)} ms at the most`)
    console.log(`JavaScript heap: ${heap} MB`)
    assert.deepEqual(wrong, [])
    return [
      ...results.filter(([, {fps}]) => fps <= leastFrames).map(([what]) => what),
      ...Object.keys(waits).filter((what) => median(waits[what]) >= longestMs),
    ]
  } finally {
    await browser.close()
    mock.stop()
  }
}

// large runs the mock as a process of its own, so that it does not share a thread with what measures.
async function large() {
  const child = spawn(process.execPath, [join(import.meta.dirname, '..', 'mock', 'main.mjs'), '--port', '0', '--large'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const url = await new Promise((resolve, reject) => {
    child.stdout.on('data', (text) => {
      const found = /(http:\S+)\/ui\//.exec(String(text))
      if (found) resolve(found[1])
    })
    child.on('exit', () => reject(new Error('The mock ended.')))
  })
  return {url, stop: () => child.kill()}
}

async function frames(page, meanwhile) {
  await page.evaluate(() => {
    globalThis.drawn = []
    const note = (at) => {
      globalThis.drawn.push(at)
      globalThis.noting = requestAnimationFrame(note)
    }
    globalThis.noting = requestAnimationFrame(note)
  })
  await meanwhile()
  return page.evaluate(() => {
    cancelAnimationFrame(globalThis.noting)
    const gaps = globalThis.drawn.slice(1).map((at, i) => at - globalThis.drawn[i])
    return {fps: (gaps.length * 1000) / gaps.reduce((sum, gap) => sum + gap, 0), worst: Math.max(...gaps)}
  })
}

async function scroll(page) {
  const box = await page.locator('.box.tall').boundingBox()
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2)
  for (let i = 0; i < 60; i++) {
    await page.mouse.wheel(0, i < 40 ? 400 : -600)
    await page.waitForTimeout(16)
  }
}

// interactions clicks one after the other, and waits each time for the frame after the next, in which what was done can be seen.
function interactions(page, selector, count) {
  return page.evaluate(
    async ({selector, count}) => {
      const times = []
      for (let i = 0; i < count; i++) {
        const targets = document.querySelectorAll(selector)
        await new Promise((resolve) => setTimeout(resolve, 230))
        const begun = performance.now()
        targets[i % targets.length].click()
        await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)))
        times.push(performance.now() - begun)
      }
      return times
    },
    {selector, count},
  )
}

function typing(page, selector, text) {
  return page.evaluate(
    async ({selector, text}) => {
      const field = document.querySelector(selector)
      const times = []
      for (let i = 1; i <= text.length; i++) {
        await new Promise((resolve) => setTimeout(resolve, 150))
        const begun = performance.now()
        field.value = text.slice(0, i)
        field.dispatchEvent(new Event('input', {bubbles: true}))
        await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)))
        times.push(performance.now() - begun)
      }
      return times
    },
    {selector, text},
  )
}

function median(times) {
  return times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)]
}

if (process.argv[1] === import.meta.filename) await speed()
