package postgres_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/postgres"
)

// Callers that enqueue single jobs at the same time share transactions. A failure of one caller must not affect the
// others.

// inserts counts the statements that store jobs.
type inserts struct{ atomic.Int32 }

func (i *inserts) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if strings.Contains(data.SQL, "insert into sluice.job ") {
		i.Add(1)
	}
	return ctx
}

func (*inserts) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TraceBatchStart counts the inserts that are sent in one batch with other statements.
func (i *inserts) TraceBatchStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	for _, q := range data.Batch.QueuedQueries {
		i.TraceQueryStart(ctx, conn, pgx.TraceQueryStartData{SQL: q.SQL})
	}
	return ctx
}

func (*inserts) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (*inserts) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}

// crowd is a store with many callers that enqueue at the same time.
type crowd struct {
	*testing.T
	store   *postgres.Store
	inserts inserts
	calls   sync.WaitGroup
	held    pgx.Tx
}

func newCrowd(t *testing.T, options postgres.Options) *crowd {
	t.Helper()
	t.Parallel()
	config, err := pgxpool.ParseConfig(migrated.Copy(t) + "&pool_max_conns=10")
	if err != nil {
		t.Fatal(err)
	}
	c := &crowd{T: t}
	config.ConnConfig.Tracer = &c.inserts
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if c.store, err = postgres.New(t.Context(), pool, options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.store.Close() })
	c.store.WaitForEnqueues(time.Hour)
	return c
}

// take begins a transaction that stores a job, and leaves it open. A caller that stores the same job must wait for it.
func (c *crowd) take(job sluice.Insert) pgx.Tx {
	c.Helper()
	tx, err := c.store.Pool().Begin(c.Context())
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	if _, err := c.store.InTx(tx).Enqueue(c.Context(), []sluice.Insert{job}); err != nil {
		c.Fatal(err)
	}
	return tx
}

// hold blocks a call, so that later calls wait behind it.
func (c *crowd) hold() {
	c.Helper()
	job := plain()
	c.held = c.take(job)
	c.inserts.Store(0)
	c.call(c.Context(), job)
	c.stuck(1)
}

// letGo lets the blocked call go on.
func (c *crowd) letGo() {
	c.Helper()
	if err := c.held.Rollback(c.Context()); err != nil {
		c.Fatal(err)
	}
}

// release lets the blocked call go on, and waits until all calls have returned.
func (c *crowd) release() {
	c.Helper()
	c.letGo()
	c.calls.Wait()
}

// sent waits until the store has sent the waiting calls.
func (c *crowd) sent() {
	for c.inserts.Load() < 2 && c.Context().Err() == nil {
		time.Sleep(time.Millisecond)
	}
}

// stuck waits until n statements wait for a transaction.
func (c *crowd) stuck(want int) {
	c.Helper()
	var stuck int
	for deadline := time.Now().Add(10 * time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if err := c.store.Pool().QueryRow(c.Context(), "select count(*) from ("+stuckOnes+") s").Scan(&stuck); err != nil {
			c.Fatal(err)
		}
		if stuck == want {
			return
		}
	}
	c.Fatalf("%d statements wait for a transaction, want %d", stuck, want)
}

const stuckOnes = "select pid from pg_stat_activity where datname = current_database() and wait_event = 'transactionid'"

// answer is the result of a call.
type answer struct {
	receipts []sluice.Receipt
	err      error
}

// call enqueues in a goroutine. It returns once the call runs or waits.
func (c *crowd) call(ctx context.Context, jobs ...sluice.Insert) *answer {
	c.Helper()
	got := new(answer)
	waiting, began := c.store.WaitingEnqueues(), c.inserts.Load()
	c.calls.Go(func() { got.receipts, got.err = c.store.Enqueue(ctx, jobs) })
	for deadline := time.Now().Add(10 * time.Minute); c.store.WaitingEnqueues() == waiting && c.inserts.Load() == began; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			c.Fatal("the call does nothing")
		}
	}
	return got
}

// wants checks the receipts of a call.
func (c *crowd) wants(what string, got *answer, want ...sluice.Receipt) {
	c.Helper()
	if got.err != nil || len(got.receipts) != len(want) {
		c.Errorf("%s: receipts %v, error %v", what, got.receipts, got.err)
		return
	}
	for i := range want {
		if got.receipts[i] != want[i] {
			c.Errorf("%s: receipt %+v, want %+v", what, got.receipts[i], want[i])
		}
	}
}

// stored checks the number of stored jobs.
func (c *crowd) stored(want int) {
	c.Helper()
	var jobs, live int
	if err := c.store.Pool().QueryRow(context.Background(), "select (select count(*) from sluice.job), (select count(*) from sluice.live)").Scan(&jobs, &live); err != nil {
		c.Fatal(err)
	}
	if jobs != want || live != want {
		c.Errorf("%d jobs are stored and %d wait, want %d", jobs, live, want)
	}
}

// plain is a job without a key.
func plain() sluice.Insert {
	return sluice.Insert{NewJob: sluice.NewJob{Queue: "q", Payload: []byte(`{}`), EnqueueOptions: sluice.EnqueueOptions{ID: sluice.NewID(), Priority: 5}}}
}

func TestManyCallersShareATransaction(t *testing.T) {
	c := newCrowd(t, postgres.Options{CallTimeout: 10 * time.Minute})
	c.hold()
	var jobs []sluice.Insert
	var answers []*answer
	for range 63 {
		jobs = append(jobs, plain())
		answers = append(answers, c.call(t.Context(), jobs[len(jobs)-1]))
	}
	c.release()
	for i, got := range answers {
		c.wants("one of many", got, sluice.Receipt{ID: jobs[i].ID})
	}
	if n := c.inserts.Load(); n != 2 {
		t.Errorf("%d statements store 64 jobs, want that of the first and that of the others", n)
	}
	c.stored(64)
}

func TestJobsThatAreRefusedFailAlone(t *testing.T) {
	c := newCrowd(t, postgres.Options{CallTimeout: 10 * time.Minute})
	before := plain()
	if _, err := c.store.Enqueue(t.Context(), []sluice.Insert{before}); err != nil {
		t.Fatal(err)
	}
	nul, gone, good, twice, pair := plain(), plain(), plain(), plain(), []sluice.Insert{plain(), plain()}
	nul.Tenant = "nul\x00"
	gone.Queue, gone.Known = "gone", true
	c.hold()
	isBad, isGone := c.call(t.Context(), nul), c.call(t.Context(), gone)
	isGood, isPair, isOld := c.call(t.Context(), good), c.call(t.Context(), pair...), c.call(t.Context(), before)
	first, second := c.call(t.Context(), twice), c.call(t.Context(), twice)
	c.release()
	if !errors.Is(isBad.err, sluice.ErrInvalid) || !strings.Contains(isBad.err.Error(), "22021") {
		t.Errorf("a job that the server cannot store: %v", isBad.err)
	}
	if !errors.Is(isGone.err, sluice.ErrQueueGone) {
		t.Errorf("a job whose queue was deleted: %v", isGone.err)
	}
	c.wants("a good one", isGood, sluice.Receipt{ID: good.ID})
	c.wants("two of one call", isPair, sluice.Receipt{ID: pair[0].ID}, sluice.Receipt{ID: pair[1].ID})
	c.wants("one that is stored", isOld, sluice.Receipt{ID: before.ID, Duplicate: true})
	if first.err != nil || second.err != nil || first.receipts[0].Duplicate == second.receipts[0].Duplicate {
		t.Errorf("one of two of the same id is a duplicate: %+v, %+v", first, second)
	}
	c.stored(1 + 1 + 1 + 2 + 1)
}

func TestCallerThatGivesUpTakesItsJobBack(t *testing.T) {
	c := newCrowd(t, postgres.Options{CallTimeout: 10 * time.Minute})
	c.hold()
	ctx, cancel := context.WithCancel(t.Context())
	given, stays := c.call(ctx, plain()), c.call(t.Context(), plain())
	cancel()
	c.release()
	if !errors.Is(given.err, context.Canceled) {
		t.Errorf("who gave up got %v", given.err)
	}
	if stays.err != nil {
		t.Errorf("another got %v", stays.err)
	}
	c.stored(2)
}

func TestCallersThatGiveUpOnSentJobsDoNotFailTheOthers(t *testing.T) {
	c := newCrowd(t, postgres.Options{CallTimeout: 10 * time.Minute})
	taken, good := plain(), plain()
	tx := c.take(taken)
	c.hold()
	ctx, cancel := context.WithCancel(t.Context())
	isTaken, isGood := c.call(ctx, taken), c.call(t.Context(), good)
	c.letGo()
	c.sent()
	c.stuck(1)
	cancel()
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.calls.Wait()
	if isTaken.err != nil && !errors.Is(isTaken.err, context.Canceled) {
		t.Errorf("who gave up got %v", isTaken.err)
	}
	c.wants("another", isGood, sluice.Receipt{ID: good.ID})
}

func TestStatementThatNobodyWaitsForIsBrokenOff(t *testing.T) {
	c := newCrowd(t, postgres.Options{CallTimeout: 10 * time.Minute})
	taken := plain()
	c.take(taken)
	c.hold()
	ctx, cancel := context.WithCancel(t.Context())
	answers := []*answer{c.call(ctx, taken), c.call(ctx, plain())}
	c.letGo()
	c.sent()
	c.stuck(1)
	cancel()
	c.calls.Wait()
	for _, got := range answers {
		if !errors.Is(got.err, context.Canceled) {
			t.Errorf("who gave up got %v", got.err)
		}
	}
	c.stuck(0) // while the other transaction is still open
}

func TestCallsStartBesideOneThatIsStuck(t *testing.T) {
	c := newCrowd(t, postgres.Options{CallTimeout: 10 * time.Minute})
	c.store.WaitForEnqueues(time.Millisecond)
	taken := plain()
	tx := c.take(taken)
	stuck := c.call(t.Context(), taken)
	c.stuck(1)
	for range 5 {
		if _, err := c.store.Enqueue(t.Context(), []sluice.Insert{plain()}); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.calls.Wait()
	c.wants("the one that was stuck", stuck, sluice.Receipt{ID: taken.ID})
	c.stored(6)
}

func TestCallsKeepTheirDeadlineBehindOneThatIsStuck(t *testing.T) {
	c := newCrowd(t, postgres.Options{CallTimeout: 2 * time.Second})
	taken := plain()
	c.take(taken)
	c.hold()
	waits := c.call(t.Context(), taken)
	c.calls.Wait()
	if !errors.Is(waits.err, sluice.ErrUnavailable) || !strings.Contains(waits.err.Error(), "gave up after 2s") {
		t.Errorf("error %v", waits.err)
	}
	c.letGo()
	if _, err := c.store.Enqueue(t.Context(), []sluice.Insert{plain()}); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func TestConnectionCutUnderAGroupStoresEachJobOnce(t *testing.T) {
	c := newCrowd(t, postgres.Options{CallTimeout: 10 * time.Minute})
	jobs := []sluice.Insert{plain(), plain(), plain()}
	tx := c.take(jobs[0])
	c.hold()
	var answers []*answer
	for _, job := range jobs {
		answers = append(answers, c.call(t.Context(), job))
	}
	c.letGo()
	c.sent()
	c.stuck(1)
	if _, err := c.store.Pool().Exec(t.Context(), "select pg_terminate_backend(pid) from ("+stuckOnes+") s"); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.calls.Wait()
	for i, got := range answers {
		c.wants("one of those whose connection was cut", got, sluice.Receipt{ID: jobs[i].ID})
	}
	c.stored(4)
}

func TestCloseWaitsForEnqueuesThatAreUnderWay(t *testing.T) {
	c := newCrowd(t, postgres.Options{CallTimeout: 10 * time.Minute})
	c.hold()
	waits := c.call(t.Context(), plain())
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_ = c.store.Close()
	}()
	for !c.store.Closed() {
		time.Sleep(time.Millisecond)
	}
	if _, err := c.store.Enqueue(t.Context(), []sluice.Insert{plain()}); !errors.Is(err, sluice.ErrUnavailable) {
		t.Errorf("a call after the end: %v", err)
	}
	select {
	case <-closed:
		t.Error("Close returned while calls were under way, want it to wait for them")
	default:
	}
	c.release()
	<-closed
	if waits.err != nil {
		t.Errorf("a call before the end: %v", waits.err)
	}
	c.stored(2)
}
