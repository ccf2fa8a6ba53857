// What the editor knows of the kinds of policies. The API says what is wrong with one, so this only has to
// offer what makes sense.

export interface Option {
  name: string
  title: string
  kind: 'number' | 'whole' | 'model' | 'models' | 'weights' | 'text' | 'flag' | 'loss' | 'scope' | 'policy'
  help: string
}

export interface Kind {
  name: string
  title: string
  text: string
  options: string[]
  learns: boolean
}

const learning = ['loss', 'scale']

export const kinds: Kind[] = [
  kind('single', 'Single', 'One model answers.', ['model']),
  kind(
    'versions',
    'Canary and weights',
    'Queries are shared between versions of the one linked model; a canary that does worse is taken back.',
    ['weights', 'canary', 'share', 'ramp_seconds', 'sticky', 'min_answers', 'max_failures', 'max_loss'],
    true,
  ),
  kind('shadow', 'Shadow', 'One model answers; others are asked beside it, for comparison.', ['model', 'models', 'share']),
  kind('hedge', 'Hedge', 'A second replica is asked where the first is slow.', ['model', 'share', 'within_micros']),
  kind(
    'epsilon_greedy',
    'Epsilon greedy',
    'The best so far, and now and then another.',
    ['models', 'scope', 'epsilon', 'discount', 'by_cost'],
    true,
  ),
  kind(
    'ucb1',
    'UCB1',
    'The one that could be best, by what is known and in doubt.',
    ['models', 'scope', 'alpha', 'discount', 'by_cost'],
    true,
  ),
  kind('thompson', 'Thompson sampling', 'Each as often as it is likely to be the best.', ['models', 'scope', 'discount', 'by_cost'], true),
  kind('exp3', 'Exp3', 'One drawn by weight; holds also against an adversary.', ['models', 'scope', 'gamma', 'eta', 'mixing'], true),
  kind(
    'linucb',
    'LinUCB',
    'One chosen by what the input says; for numbers only.',
    ['models', 'scope', 'alpha', 'features', 'discount', 'by_cost'],
    true,
  ),
  kind(
    'exp4',
    'Exp4',
    'All answer; a vote weighted by how right each has been.',
    ['models', 'most', 'scope', 'eta', 'mixing', 'by_cost'],
    true,
  ),
  kind('vote', 'Vote', 'All answer; what most say.', ['models', 'most', 'weights', 'agreement', 'within_micros', 'by_cost']),
  kind('mean', 'Mean', 'The mean of all numbers or vectors.', ['models', 'most', 'weights', 'by_cost']),
  kind('median', 'Median', 'The median of all numbers or vectors.', ['models', 'most', 'by_cost']),
  kind('best', 'Best', 'The answer that is surest of itself.', ['models', 'most', 'qualifier', 'within_micros', 'by_cost']),
  kind('logistic', 'Logistic', '0 or 1, by a regression over all outputs.', ['models', 'most', 'scope', 'eta', 'by_cost'], true),
  kind('stacking', 'Stacking', 'A mean with learned weights.', ['models', 'most', 'scope', 'eta', 'by_cost'], true),
  kind('guaranteed', 'Guaranteed', 'The best there is in time; the first model is the quick one.', ['models', 'most', 'within_micros']),
  kind('first_acceptable', 'First acceptable', 'The first answer that is sure enough.', [
    'models',
    'most',
    'confidence',
    'qualifier',
    'within_micros',
  ]),
  kind('cascade', 'Cascade', 'The cheapest first; the next only where it is not sure.', ['models', 'most', 'confidence', 'qualifier']),
  kind('custom', 'Custom', 'A model of yours decides.', ['model', 'models', 'most', 'scope', 'within_micros', 'fallback'], true),
]

export const options: Option[] = [
  {
    name: 'model',
    title: 'Model',
    kind: 'model',
    help: 'Who answers, or of a custom policy who decides. The first that is linked, where none is chosen.',
  },
  {name: 'models', title: 'Models', kind: 'models', help: 'Who may be asked, in this order. All that are linked, where none is chosen.'},
  {name: 'most', title: 'Most models', kind: 'whole', help: 'How many are asked for one query. 0: all.'},
  {name: 'weights', title: 'Weights', kind: 'weights', help: 'NAME=WEIGHT on each line: versions, or models for a vote or a mean.'},
  {name: 'canary', title: 'Canary', kind: 'text', help: 'The version that is tried.'},
  {name: 'share', title: 'Share', kind: 'number', help: 'Of the queries, 0 to 1.'},
  {name: 'ramp_seconds', title: 'Ramp, in seconds', kind: 'whole', help: 'Until the canary has its share.'},
  {name: 'sticky', title: 'A user stays with a version', kind: 'flag', help: ''},
  {name: 'min_answers', title: 'Answers before it is judged', kind: 'whole', help: 'Of each version; 20 by default.'},
  {
    name: 'max_failures',
    title: 'Failures allowed',
    kind: 'number',
    help: 'By how much its share of failures may be larger; 0.1 by default.',
  },
  {name: 'max_loss', title: 'Loss allowed', kind: 'number', help: 'By how much its mean loss may be larger; 0.1 by default.'},
  {name: 'scope', title: 'Learns for', kind: 'scope', help: 'Whose state is kept.'},
  {name: 'epsilon', title: 'Epsilon', kind: 'number', help: 'The share of queries that try another model; 0.1 by default.'},
  {name: 'gamma', title: 'Gamma', kind: 'number', help: 'The share of queries that is spread evenly; 0.1 by default.'},
  {name: 'eta', title: 'Eta', kind: 'number', help: 'The learning rate.'},
  {name: 'mixing', title: 'Mixing', kind: 'number', help: 'How much of the weights is shared out at each step, to follow change.'},
  {name: 'discount', title: 'Discount', kind: 'number', help: 'What is left of the past at each step; 1 forgets nothing.'},
  {name: 'alpha', title: 'Alpha', kind: 'number', help: 'How much doubt counts.'},
  {name: 'features', title: 'Features', kind: 'whole', help: 'How many numbers of the input it looks at; 16 by default.'},
  {name: 'by_cost', title: 'Rank by worth for the cost', kind: 'flag', help: ''},
  {name: 'agreement', title: 'Agreement', kind: 'number', help: 'The share of those asked that must agree. 0: most votes win.'},
  {name: 'confidence', title: 'Confidence', kind: 'number', help: 'What is sure enough, 0 to 1; 0.8 by default.'},
  {name: 'qualifier', title: 'Qualifier', kind: 'text', help: 'The named value of outputs that is judged instead of their confidence.'},
  {name: 'within_micros', title: 'Decides after, in µs', kind: 'whole', help: 'With what is there by then.'},
  {name: 'fallback', title: 'Fallback', kind: 'policy', help: 'As JSON. Decides when the custom policy does not in time.'},
  {name: 'loss', title: 'Loss', kind: 'loss', help: 'How far an answer was off.'},
  {name: 'scale', title: 'Scale', kind: 'number', help: 'The error that counts as loss 1, of absolute and squared.'},
]

function kind(name: string, title: string, text: string, own: string[], learns = false): Kind {
  return {name, title, text, options: learns ? [...own, ...learning] : own, learns}
}

// kindOf finds a kind by the policy's word, which may be left out.
export function kindOf(name: unknown): Kind | undefined {
  return kinds.find((known) => known.name === (name || 'single'))
}
