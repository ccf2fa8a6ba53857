// What the editor of policies shows. The kinds and their options are those of the API's document; what is said here is what they
// are called.
import {policySchema, type Policy} from '../api/schema'
import {capital} from './format'

export type KindName = keyof (typeof policySchema)['x-kinds']
export type OptionName = Exclude<keyof Policy, 'kind' | 'costs' | 'record_seconds'> // no field is for those

export interface Kind {
  name: KindName
  title: string
  text: string
  options: readonly OptionName[]
  learns: boolean
}

export interface Option {
  name: OptionName
  title: string
  help: string
  control: 'number' | 'text' | 'flag' | 'choice' | 'model' | 'models' | 'weights' | 'policy'
  choices?: [string, string][]
}

const kindTexts: Record<KindName, [title: string, text: string]> = {
  single: ['Single', 'One model answers.'],
  versions: ['Canary and weights', 'Queries are shared between versions of the one linked model; a canary that does worse is taken back.'],
  shadow: ['Shadow', 'One model answers; others are asked beside it, for comparison.'],
  hedge: ['Hedge', 'A second replica is asked where the first is slow.'],
  epsilon_greedy: ['Epsilon greedy', 'The best so far, and now and then another.'],
  ucb1: ['UCB1', 'The one that could be best, by what is known and in doubt.'],
  thompson: ['Thompson sampling', 'Each as often as it is likely to be the best.'],
  exp3: ['Exp3', 'One drawn by weight; holds also against an adversary.'],
  linucb: ['LinUCB', 'One chosen by what the input says; for numbers only.'],
  exp4: ['Exp4', 'All answer; a vote weighted by how right each has been.'],
  vote: ['Vote', 'All answer; what most say.'],
  mean: ['Mean', 'The mean of all numbers or vectors.'],
  median: ['Median', 'The median of all numbers or vectors.'],
  best: ['Best', 'The answer that is surest of itself.'],
  logistic: ['Logistic', '0 or 1, by a regression over all outputs.'],
  stacking: ['Stacking', 'A mean with learned weights.'],
  guaranteed: ['Guaranteed', 'The best there is in time; the first model is the quick one.'],
  first_acceptable: ['First acceptable', 'The first answer that is sure enough.'],
  cascade: ['Cascade', 'The cheapest first; the next only where it is not sure.'],
  prefer: ['Prefer', 'The first in order that can answer in time; the next where it refuses, fails, is late or is not there.'],
  custom: ['Custom', 'A model of yours decides.'],
}

// The options in the order of their fields.
const optionTitles: Record<OptionName, string> = {
  model: 'Model',
  models: 'Models',
  order: 'Order',
  most: 'Most models',
  weights: 'Weights',
  canary: 'Canary',
  share: 'Share',
  ramp_seconds: 'Ramp, in seconds',
  sticky: 'A user stays with a version',
  min_answers: 'Answers before it is judged',
  max_failures: 'Failures allowed',
  max_loss: 'Loss allowed',
  scope: 'Learns for',
  epsilon: 'Epsilon',
  gamma: 'Gamma',
  eta: 'Eta',
  mixing: 'Mixing',
  discount: 'Discount',
  alpha: 'Alpha',
  features: 'Features',
  by_cost: 'Rank by worth for the cost',
  agreement: 'Agreement',
  confidence: 'Confidence',
  qualifier: 'Qualifier',
  within_micros: 'Decides after, in µs',
  fallback: 'Fallback',
  loss: 'Loss',
  scale: 'Scale',
}

type Words<Name extends OptionName> = Record<Extract<Policy[Name], string>, string>
const scopes: Words<'scope'> = {
  '': 'Each user (default)',
  app: 'All together',
  user: 'Each user',
  context: 'Each context',
  user_context: 'Each user in each context',
}
const losses: Words<'loss'> = {'': 'By the type of the output', zero_one: 'Zero or one', absolute: 'Absolute', squared: 'Squared'}

// Options whose field does not follow from their type, and what it has to say beside what the option is.
const fields: {[Name in OptionName]?: Pick<Option, 'control' | 'choices'> & {hint?: string}} = {
  model: {control: 'model'},
  models: {control: 'models'},
  order: {control: 'models'},
  weights: {control: 'weights', hint: 'NAME=WEIGHT on each line. '},
  scope: {control: 'choice', choices: Object.entries(scopes)},
  fallback: {control: 'policy', hint: 'As JSON. '},
  loss: {control: 'choice', choices: Object.entries(losses)},
}

const learning: OptionName[] = ['loss', 'scale'] // of every kind, and of use only to those that learn

const ofKinds: Record<KindName, {options: readonly OptionName[]; learns?: boolean}> = policySchema['x-kinds']
const described: Record<OptionName, {type?: string; description: string}> = policySchema.properties

export const kinds: Kind[] = namesOf(kindTexts).map((name) => {
  const [title, text] = kindTexts[name]
  const {options, learns = false} = ofKinds[name]
  return {name, title, text, options: learns ? [...options, ...learning] : options, learns}
})

export const options: Option[] = namesOf(optionTitles).map((name) => {
  const {type, description} = described[name]
  const {hint = '', ...field} = fields[name] ?? {control: type === 'boolean' ? 'flag' : type === 'string' ? 'text' : 'number'}
  return {name, title: optionTitles[name], help: `${hint}${capital(description)}.`, ...field}
})

function namesOf<Name extends string>(of: Record<Name, unknown>): Name[] {
  return Object.keys(of) as Name[]
}

// kindOf finds a kind by the policy's word, which may be left out.
export function kindOf(name: unknown): Kind | undefined {
  return kinds.find((known) => known.name === (name || 'single'))
}
