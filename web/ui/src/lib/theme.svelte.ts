export type Choice = 'system' | 'light' | 'dark'

const place = 'topsail.theme'
const choices: readonly Choice[] = ['system', 'light', 'dark']

// Theme is light, dark, or what the system says. The choice stays in this browser.
export class Theme {
  choice = $state<Choice>(stored())
  changes = $state(0) // who draws with colours depends on it

  constructor() {
    this.#show()
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.changes++)
  }

  choose(choice: Choice) {
    this.choice = choice
    try {
      localStorage.setItem(place, choice)
    } catch {
      // A browser that stores nothing still shows the theme until it is closed.
    }
    this.#show()
  }

  next() {
    this.choose(choices[(choices.indexOf(this.choice) + 1) % choices.length] ?? 'system')
  }

  #show() {
    document.documentElement.dataset.theme = this.choice
    this.changes++
  }
}

function stored(): Choice {
  try {
    const choice = localStorage.getItem(place)
    return choices.find((known) => known === choice) ?? 'system'
  } catch {
    return 'system'
  }
}
