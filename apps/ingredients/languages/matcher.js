// Matches ingredients: claims mentions from queues of Sluice, resolves each, and settles it in the transaction of its
// effect. It needs pg and nothing of Sluice but its SQL functions.
//
//   node matcher.js --db postgres://USER@HOST/DATABASE --queues scraper,recipe
'use strict'
const { randomBytes } = require('node:crypto')
const { hostname } = require('node:os')
const { setTimeout: sleep } = require('node:timers/promises')
const { parseArgs } = require('node:util')
const { Client, Pool } = require('pg')

// Classes of SQLSTATE that another attempt may mend: connection, rollback, resources, not now, system.
const TRANSIENT = ['08', '40', '53', '55', '57', '58']
const LOST = 'SL001'

const log = (event, more) => console.error(JSON.stringify({ event, ...more }))

const { values: flags } = parseArgs({ options: {
  db: { type: 'string', default: process.env.INGREDIENTS_DB ?? '' }, // or INGREDIENTS_DB
  queues: { type: 'string', default: 'scraper,recipe' }, // sources to claim from
  batch: { type: 'string', default: '10' }, // how many to claim at a time
  lease: { type: 'string', default: '180' }, // seconds that a claim holds without being renewed
  limit: { type: 'string', default: '0' }, // end after so many jobs; 0: never
  'until-empty': { type: 'boolean', default: false }, // end when there is nothing to claim
  poll: { type: 'string', default: '2' }, // seconds after which to claim again if no signal came
  work: { type: 'string', default: '0' }, // seconds that each job takes besides, for the demo
} })
const queues = flags.queues.split(',')
const [batch, lease, limit, work, poll] = [flags.batch, flags.lease, flags.limit, flags.work, flags.poll].map(Number)

const holder = `${hostname()}:${process.pid}:${randomBytes(4).toString('hex')}`
const resolver = 'node ' + holder
const held = new Map() // id: token
let stopping = false
let claimed = 0
let woken = false // somebody enqueued since the last claim began
let wake = () => {} // ends what is waited for now

// A pool of one, so that renewing has a connection of its own and gets a new one if that breaks.
const aside = new Pool({ connectionString: flags.db, max: 1 })
aside.on('error', (error) => log('connection broke', { error: error.message }))

async function renew () {
  const holding = [...held] // ids and tokens of one moment: jobs end while the heartbeat is under way
  await aside.query('select sluice.heartbeat(holder => $1, queues => $2, busy => $3)', [holder, queues, holding.length])
  const { rows } = await aside.query('select id, held from sluice.renew_many(ids => $1, tokens => $2, lease_seconds => $3)',
    [holding.map(([id]) => id), holding.map(([, token]) => token), lease])
  for (const row of rows) if (!row.held) held.delete(row.id)
}

async function inTransaction (db, run) {
  await db.query('begin')
  try {
    const made = await run()
    await db.query('commit')
    return made
  } catch (error) {
    await db.query('rollback')
    throw error
  }
}

// Each job for itself: an error of one is no matter of the others.
async function one (db, job) {
  try {
    await sleep(work * 1000) // stands for what takes time, such as asking a service; nothing is open meanwhile
    await inTransaction(db, async () => {
      const { rows } = await db.query('select ingredients.match($1, $2, $3, $4) as made', [job.payload.mention, job.id, job.attempt, resolver])
      await db.query('select sluice.complete(id => $1, token => $2, result => $3)', [job.id, job.token, JSON.stringify(rows[0].made)])
    })
  } catch (error) {
    await failed(db, job, error)
  }
}

async function failed (db, job, error) {
  if (error.code === LOST) return log('claim lost', { job: job.id })
  const retryable = TRANSIENT.includes(error.code?.slice(0, 2))
  try {
    await inTransaction(db, async () => {
      const { rows } = await db.query('select sluice.fail(id => $1, token => $2, error => $3, retryable => $4) as state', [job.id, job.token, error.message, retryable])
      await db.query('select ingredients.note_failure($1, $2, $3, $4, $5)', [job.id, job.attempt, resolver, error.message, rows[0].state === 'dead'])
    })
  } catch (again) {
    if (again.code !== LOST) throw again
    log('claim lost', { job: job.id })
  }
}

// Takes a signal such as "sql queue recipe".
function hear ({ payload }) {
  if (!queues.some((queue) => payload.endsWith(' queue ' + queue))) return
  woken = true
  wake()
}

// Waits until somebody enqueues, or something may start by itself. A signal that is lost costs one poll.
async function idle (db) {
  const { rows: [{ seconds }] } = await db.query('select min(seconds) as seconds from sluice.wait(queues => $1)', [queues])
  if (woken || stopping) return
  await new Promise((resolve) => {
    const timer = setTimeout(resolve, 1000 * (seconds === null ? poll : Math.min(Math.max(seconds, 0.05), poll)))
    wake = () => { clearTimeout(timer); resolve() }
  })
  wake = () => {}
}

async function matchAll (db) {
  await db.query('listen sluice')
  while (!stopping) {
    woken = false
    const left = limit ? limit - claimed : batch
    if (left <= 0) return
    const { rows: jobs } = await db.query('select * from sluice.claim(queues => $1, holder => $2, batch => $3, lease_seconds => $4)',
      [queues, holder, Math.min(left, batch), lease])
    claimed += jobs.length
    for (const job of jobs) held.set(job.id, job.token)
    for (const [place, job] of jobs.entries()) {
      if (stopping) {
        const rest = jobs.slice(place)
        await db.query("select sluice.release_many(ids => $1, tokens => $2, reason => 'the matcher stops')", [rest.map((j) => j.id), rest.map((j) => j.token)])
        return
      }
      if (!held.has(job.id)) continue // somebody else has it by now
      await one(db, job)
      held.delete(job.id)
    }
    if (jobs.length === 0 && flags['until-empty']) return
    if (jobs.length === 0) await idle(db)
  }
}

async function main () {
  for (const name of ['SIGTERM', 'SIGINT']) process.on(name, () => { stopping = true; wake() })
  let busy = false // a renewal that takes long is not overtaken by the next
  const renewing = setInterval(() => {
    if (busy) return
    busy = true
    renew().catch((error) => log('leases not renewed', { error: error.message })).finally(() => { busy = false })
  }, Math.min(lease / 3, 10) * 1000)
  for (let wait = 1; !stopping; wait = Math.min(wait * 2, 30)) {
    const db = new Client({ connectionString: flags.db })
    let broken = false
    for (const event of ['error', 'end']) db.on(event, () => { broken = true; wake() })
    db.on('notification', hear)
    try {
      await db.connect()
      wait = 1
      await matchAll(db)
      await db.query('select sluice.leave(holder => $1)', [holder])
      await db.end()
      break
    } catch (error) {
      if (!broken && !/^(08|57|E)/.test(error.code)) throw error // one of ours
      // What is held and was not settled comes back when its lease has run out.
      log('database away', { error: error.message, again_in: wait })
      held.clear()
      await db.end().catch(() => {})
      await sleep(wait * 1000)
    }
  }
  clearInterval(renewing)
  await aside.end()
}

main().catch((error) => {
  log('matcher ended', { error: error.message })
  process.exit(1)
})
