// Looks at the pages in a real browser: `node e2e/run.mjs PART,PART... ...`, where what commas join goes one after another, beside
// the other arguments. Build first. scripts/test-ui runs a real Topsail for it.
//
//   states, trying, walk   what the pages do and how they look, of the mock
//   pages                  as walk, every page in both themes and at two widths
//   flows                  what a person does, of the Topsail at BASE_URL or else of the mock
//   origins                what pages of other sites can do, of TOPSAIL, the program
//   answers                queries from the page of models in Python, of TOPSAIL
//   speed                  how smooth the pages are
import {answers} from './answers.mjs'
import {flows} from './flows.mjs'
import {origins} from './origins.mjs'
import {pages, walk} from './pages.mjs'
import {speed} from './speed.mjs'
import {states} from './states.mjs'
import {trying} from './trying.mjs'

const parts = {answers, flows, origins, pages, walk, speed, states, trying}
await Promise.all(
  process.argv.slice(2).map(async (lane) => {
    for (const name of lane.split(',')) {
      const begun = performance.now()
      await parts[name]()
      console.log(`${name} took ${((performance.now() - begun) / 1000).toFixed(0)} s`)
    }
  }),
)
