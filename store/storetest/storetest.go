// Package storetest holds the rules that every sluice.Store obeys, as numbered plain sentences, each
// with its check, and a model that random sequences of verbs are compared with. A store's own test
// calls Run and Model.
package storetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
)

// Bench is a store on data of its own, for one rule.
type Bench struct {
	// Store is the one to try.
	Store sluice.Store
	// Other works on the same data as another process would. It may be the same as Store where
	// the data cannot be shared.
	Other sluice.Store
	// Now is the store's clock.
	Now func() time.Time
	// Advance lets time pass for the store.
	Advance func(time.Duration)
	// Refresh makes the stores forget what they remember of each other's work only to be quick;
	// nil: they remember nothing. A store may be a moment late with what another has done, and the
	// model has no moments.
	Refresh func()
	// SetColumn changes a column of the usual queue's row as plain SQL does, behind the store's back. An
	// instant is a time.Time.
	SetColumn func(column string, value any)
	// Slow says that verbs cost so much that fewer long sequences are tried.
	Slow bool
	// CountsNothing says that PressureCounts counts no refused and shed jobs, as of the SQL functions.
	CountsNothing bool
	// Silent says that nobody is signalled of the end of a job, as by the SQL functions.
	Silent bool
	// Follow lets a row of the user's own follow each job of a queue, and Astray says which rows do not agree with their
	// jobs; nil: nothing follows. The model asks after each verb.
	Follow func(queue string)
	Astray func() []string
}

// Rule is something that every store does.
type Rule struct {
	// ID is never used again for another rule.
	ID string
	// Summary is the rule as a sentence.
	Summary string
	// Because names the invariants and source requirements that ask for it, or links the guide that promises it, from docs.
	Because string

	check func(w *world)
}

// Rules lists every rule, in order.
func Rules() []Rule {
	var all []Rule
	for _, part := range [][]Rule{
		enqueueRules(), keyRules(), keyTenantRules(), debounceRules(), pressureRules(), claimRules(), leaseRules(), settleRules(), moveRules(), actRules(), holdRules(), editRules(), timeoutRules(), progressRules(), settingRules(), queueDeleteRules(), queuePolicyRules(), groupRules(), awaitRules(), tendRules(),
		lookRules(), processRules(), instructionRules(), flowRules(), windowRules(), namedLimitRules(), limitKeyRules(), planRules(), tenantRules(), turnsRules(), waveRules(), orderRules(), afterRules(), flowGraphRules(), depthRules(),
		dispatchRules(), strayRules(), openRunRules(), noteRules(),
		statRules(),
		operationRules(),
		scheduleRules(),
		scheduleRefusedRules(), scheduleLongRules(),
		batchRules(), batchActRules(),
		accessRules(),
		deadNoteRules(),
		savingRules(), againRules(),
		flowsRules(),
		alertRules(),
		auditRules(),
	} {
		all = append(all, part...)
	}
	return all
}

// Lack says which rules a store cannot obey, and why.
type Lack struct {
	// Rules are the IDs of the rules.
	Rules []string
	// Because is the reason, as a sentence.
	Because string
}

// Run checks every rule, each on a bench of its own, but for those that the store lacks.
func Run(t *testing.T, open func(t *testing.T) Bench, lacks ...Lack) { run(t, open, Rules(), lacks) }

// RunLife is Run with the rules about single jobs: from their enqueue to their end, and what people do with them.
func RunLife(t *testing.T, open func(t *testing.T) Bench, lacks ...Lack) {
	var some []Rule
	for _, part := range [][]Rule{
		enqueueRules(), keyRules(), keyTenantRules(), claimRules(), leaseRules(), settleRules(), moveRules(), actRules(), holdRules(), editRules(), progressRules(), awaitRules(),
	} {
		some = append(some, part...)
	}
	run(t, open, some, lacks)
}

// run checks rules.
func run(t *testing.T, open func(t *testing.T) Bench, rules []Rule, lacks []Lack) {
	lacked := make(map[string]bool)
	for _, lack := range lacks {
		for _, id := range lack.Rules {
			if lacked[id] = true; lack.Because == "" || !slices.ContainsFunc(Rules(), func(r Rule) bool { return r.ID == id }) {
				t.Errorf("%s: there is no such rule, or no reason why the store lacks it", id)
			}
		}
	}
	for _, rule := range rules {
		if lacked[rule.ID] {
			continue
		}
		t.Run(rule.ID, func(t *testing.T) {
			t.Parallel()
			t.Logf("%s: %s (%s)", rule.ID, rule.Summary, rule.Because)
			rule.check(&world{T: t, Bench: open(t), ctx: t.Context()})
		})
	}
}

// queue is the one that most rules use.
const queue = "payments"

// world is a bench and what the rules need to speak shortly.
type world struct {
	*testing.T
	Bench
	ctx context.Context
}

// holder names a claiming process.
func holder(n int) string { return fmt.Sprintf("host:%d:test", n) }

// person acts in the rules.
func person(reason string) sluice.Act {
	return sluice.Act{By: "ada", Reason: reason, ID: sluice.NewID()}
}

// insertOf completes a job as the client would.
func insertOf(options sluice.EnqueueOptions) sluice.Insert {
	if options.ID.IsZero() {
		options.ID = sluice.NewID()
	}
	if options.Priority == 0 {
		options.Priority = sluice.DefaultPriority
	}
	if options.Key != "" {
		if options.KeyScope == "" {
			options.KeyScope = sluice.WhileUnfinished
		}
		if options.OnDuplicate == "" {
			options.OnDuplicate = sluice.Keep
		}
	}
	if len(options.After) > 0 {
		options.After = slices.Clone(options.After)
		slices.SortFunc(options.After, func(a, b sluice.ID) int { return bytes.Compare(a[:], b[:]) })
		options.After = slices.Compact(options.After)
		if options.AfterFailure == "" {
			options.AfterFailure = sluice.FailureCancels
		}
	}
	return sluice.Insert{NewJob: sluice.NewJob{Queue: queue, Payload: json.RawMessage(`{"amount":1}`), EnqueueOptions: options}}
}

// receipt enqueues a job with the store to try.
func (w *world) receipt(options sluice.EnqueueOptions) sluice.Receipt {
	w.Helper()
	return w.receipts(insertOf(options))[0]
}

func (w *world) receipts(inserts ...sluice.Insert) []sluice.Receipt {
	w.Helper()
	receipts, err := w.Store.Enqueue(w.ctx, inserts)
	if err != nil {
		w.Fatalf("enqueue: %v", err)
	}
	if len(receipts) != len(inserts) {
		w.Fatalf("enqueue of %d jobs gave %d receipts", len(inserts), len(receipts))
	}
	return receipts
}

// add enqueues a job that is new.
func (w *world) add(options sluice.EnqueueOptions) sluice.ID {
	w.Helper()
	r := w.receipt(options)
	if r.Duplicate {
		w.Fatalf("a new job came back as a duplicate of %s", r.ID)
	}
	return r.ID
}

// addMany enqueues n plain jobs.
func (w *world) addMany(n int) []sluice.ID {
	w.Helper()
	inserts := make([]sluice.Insert, n)
	ids := make([]sluice.ID, n)
	for i := range inserts {
		inserts[i] = insertOf(sluice.EnqueueOptions{})
		ids[i] = inserts[i].ID
	}
	w.receipts(inserts...)
	return ids
}

// claimOf is a request of a holder.
func claimOf(n, limit int) sluice.ClaimRequest {
	return sluice.ClaimRequest{Queue: queue, Limit: limit, Holder: holder(n), Lease: time.Minute, Token: sluice.NewToken()}
}

// claim takes up to limit jobs for holder 1.
func (w *world) claim(limit int) []*sluice.Claim {
	w.Helper()
	return w.claimAs(w.Store, claimOf(1, limit))
}

// claimAs takes jobs, looking again where the answer says to look again very soon.
func (w *world) claimAs(store sluice.Store, request sluice.ClaimRequest) []*sluice.Claim {
	w.Helper()
	for range 100 {
		claimed, err := store.Claim(w.ctx, request)
		if err != nil {
			w.Fatalf("claim: %v", err)
		}
		if len(claimed.Jobs) > 0 || claimed.NextDue < 0 || claimed.NextDue > 5*time.Second {
			return claimed.Jobs
		}
		time.Sleep(claimed.NextDue + time.Millisecond)
	}
	return nil
}

// claimOne takes exactly one job.
func (w *world) claimOne() *sluice.Claim {
	w.Helper()
	claims := w.claim(1)
	if len(claims) != 1 {
		w.Fatalf("claimed %d jobs, want 1", len(claims))
	}
	return claims[0]
}

// claimNone makes sure that nothing can be claimed.
func (w *world) claimNone(why string) {
	w.Helper()
	if claims := w.claim(10); len(claims) > 0 {
		w.Fatalf("claimed %d jobs, want none: %s", len(claims), why)
	}
}

// by settles a claim with an event.
func by(event sluice.Event, c *sluice.Claim) sluice.Settlement {
	s := sluice.Settlement{ID: c.ID, Token: c.Token, Holder: c.Holder, Event: event}
	if event == sluice.EventRetry || event == sluice.EventBury {
		s.Error = "no route to bank"
	}
	return s
}

// settle settles one claim and gives the item's error.
func (w *world) settle(s sluice.Settlement) error {
	w.Helper()
	errs, err := w.Store.Settle(w.ctx, []sluice.Settlement{s})
	if err != nil {
		w.Fatalf("settle: %v", err)
	}
	return errs[0]
}

// done settles one claim, which must succeed.
func (w *world) done(s sluice.Settlement) {
	w.Helper()
	if err := w.settle(s); err != nil {
		w.Fatalf("%s: %v", s.Event, err)
	}
}

// job looks a job up.
func (w *world) job(id sluice.ID) sluice.Job {
	w.Helper()
	j, err := w.Store.Job(w.ctx, id)
	if err != nil {
		w.Fatalf("look up %s: %v", id, err)
	}
	return j
}

// inState makes sure that a job is in a state.
func (w *world) inState(id sluice.ID, want sluice.State) sluice.Job {
	w.Helper()
	j := w.job(id)
	if j.State != want {
		w.Fatalf("job %s is %s, want %s", id, j.State, want)
	}
	return j
}

// save stores settings of the usual queue.
func (w *world) save(change func(*sluice.Settings)) sluice.Queue {
	w.Helper()
	return w.saveNamed(queue, change)
}

// saveNamed stores settings of a queue.
func (w *world) saveNamed(name string, change func(*sluice.Settings)) sluice.Queue {
	w.Helper()
	q := sluice.Queue{Name: name, Settings: sluice.DefaultSettings()}
	queues, err := w.Store.Queues(w.ctx, sluice.QueueFilter{})
	if err != nil {
		w.Fatalf("list queues: %v", err)
	}
	for _, stored := range queues {
		if stored.Name == name {
			q = stored
		}
	}
	change(&q.Settings)
	q, err = w.Store.SaveQueue(w.ctx, q, person("test"))
	if err != nil {
		w.Fatalf("save queue: %v", err)
	}
	return q
}

// recover lets upkeep look at leases once.
func (w *world) recover() sluice.Recovered {
	w.Helper()
	out, err := w.Store.Recover(w.ctx, queue, 1000, "upkeep")
	if err != nil {
		w.Fatalf("recover: %v", err)
	}
	return out
}

// audit lists what was told of a job, the oldest first.
func (w *world) audit(id sluice.ID) []sluice.AuditEntry {
	w.Helper()
	entries, err := w.Store.Audit(w.ctx, sluice.AuditFilter{JobID: id, Limit: 1000})
	if err != nil {
		w.Fatalf("read audit: %v", err)
	}
	for i, k := 0, len(entries)-1; i < k; i, k = i+1, k-1 {
		entries[i], entries[k] = entries[k], entries[i]
	}
	return entries
}

// told makes sure that the audit of a job ends with an event.
func (w *world) told(id sluice.ID, event sluice.Event) sluice.AuditEntry {
	w.Helper()
	entries := w.audit(id)
	if len(entries) == 0 || entries[len(entries)-1].Event != event {
		w.Fatalf("the audit of %s is %+v, want its last entry to tell of %s", id, entries, event)
	}
	return entries[len(entries)-1]
}

// is makes sure that an error is of a kind.
func (w *world) is(err, want error) {
	w.Helper()
	if !errors.Is(err, want) {
		w.Fatalf("the error is %v, want %v", err, want)
	}
}

// near makes sure that two instants are about the same; stores keep microseconds at least, and a machine may be busy.
func (w *world) near(what string, got, want time.Time) {
	w.Helper()
	if diff := got.Sub(want).Abs(); diff > 30*time.Second {
		w.Fatalf("%s is %s, want about %s", what, got, want)
	}
}

// equal makes sure of a figure or a name.
func equal[T comparable](w *world, what string, got, want T) {
	w.Helper()
	if got != want {
		w.Fatalf("%s is %v, want %v", what, got, want)
	}
}

// ok ends a rule on an error.
func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// only gives the error of a batch of one.
func (w *world) only(errs []error, err error) error {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
	if len(errs) != 1 {
		w.Fatalf("%d errors for one item", len(errs))
	}
	return errs[0]
}
