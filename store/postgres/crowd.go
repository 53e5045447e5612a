package postgres

import (
	"context"
	_ "embed"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice"
)

//go:embed sql/crowds.sql
var crowdsSQL string

const (
	// crowdFirst is how many processes look for jobs at once after a signal, on average. If more processes serve
	// the queue, the others delay their looks, and the process that takes the jobs cancels those looks. Without
	// this, 50 processes look at once and 1 gets the job. Each draws for itself, so after 1 signal in 150 none looks
	// at once; with 3 it would be 1 in 20.
	crowdFirst = 5
	// crowdFew is the same while signals of a queue follow each other within crowdBusy. The next signal comes soon, and who
	// looks then finds the jobs of both. So each signal begins a delay anew, and nobody reports that jobs are taken.
	crowdFew  = 3
	crowdBusy = 20 * time.Millisecond
	// crowdRest is the shortest delay: by then, most processes have heard that the jobs are taken.
	crowdRest = 6 * time.Millisecond
	// crowdStep is the average time between the delayed looks.
	crowdStep = 2 * time.Millisecond
	// crowdMost is the longest delay of a look.
	crowdMost = 200 * time.Millisecond
	// crowdCount is how often the processes are counted. The first pause is shorter, because some processes may not
	// have sent their first heartbeat yet.
	crowdCount      = 45 * time.Second
	crowdFirstCount = 5 * time.Second
)

// crowds knows the queues for which a signal would wake many processes, and their signals.
type crowds struct {
	mu     sync.Mutex
	queues map[string]*crowd
	hears  bool // this process hears signals, including its own
}

// crowd is a queue that many processes serve or served.
type crowd struct {
	processes int       // 0: few
	signals   int       // how many signals the queue got
	last      time.Time // time of the last signal
	busy      bool      // the last two signals came within crowdBusy
	told      int       // signals up to the beginning of the claim that was reported last
}

// set stores how many processes serve each queue with many. Other queues keep their counts of signals, because a
// running claim may still be reported to the other processes.
func (c *crowds) set(processes map[string]int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.queues == nil {
		c.queues = make(map[string]*crowd)
	}
	for _, q := range c.queues {
		q.processes = 0
	}
	for queue, n := range processes {
		if c.queues[queue] == nil {
			c.queues[queue] = &crowd{}
		}
		c.queues[queue].processes = n
	}
}

// hear stores whether the store hears signals. A deaf store never reports that jobs are taken, because it would
// miss signals that arrive meanwhile.
func (c *crowds) hear(hears bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hears = hears
}

// signalled counts a signal of a queue, and returns how long to delay a look at the queue. If busy, a delay that runs
// begins anew.
func (c *crowds) signalled(queue string) (wait time.Duration, busy bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := c.queues[queue]
	if q == nil {
		return 0, false
	}
	q.signals++
	q.busy = time.Since(q.last) < crowdBusy
	q.last = time.Now()
	first, rest := crowdFirst, crowdRest
	if q.busy {
		first, rest = crowdFew, crowdBusy
	}
	if q.processes == 0 || rand.IntN(q.processes) < first {
		return 0, q.busy
	}
	return rest + rand.N(min(time.Duration(q.processes)*crowdStep, crowdMost-rest)), q.busy
}

// before returns the counts of signals of a claim's queues. Nil: many processes serve no queue at all.
func (c *crowds) before(request sluice.ClaimRequest) map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queues) == 0 {
		return nil
	}
	signals := make(map[string]int)
	for queue := range limitsOf(request) {
		if q := c.queues[queue]; q != nil {
			signals[queue] = q.signals
		}
	}
	return signals
}

// limitsOf returns the limit of a claim for each queue.
func limitsOf(request sluice.ClaimRequest) map[string]int {
	if len(request.Queues) == 0 {
		return map[string]int{request.Queue: request.Limit}
	}
	limits := make(map[string]int, len(request.Queues))
	for _, q := range request.Queues {
		limits[q.Queue] = q.Limit
	}
	return limits
}

// takes records that a claim took all jobs of a queue. Signals is the queue's count of signals when the claim
// began. takes reports whether other processes may have delayed looks.
func (c *crowds) takes(queue string, signals int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := c.queues[queue]
	if q == nil || !c.hears || q.busy || time.Since(q.last) > crowdMost {
		return false
	}
	q.told = signals
	return true
}

// missed reports whether the queue got a signal after the reported claim began. Other processes have dropped looks
// that were needed.
func (c *crowds) missed(queue string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := c.queues[queue]
	return q != nil && q.signals > q.told
}

// counting counts the processes that serve each queue, until ctx ends. After an error, the last counts stay.
func (s *Store) counting(ctx context.Context) {
	for wait := crowdFirstCount; ; wait = crowdCount {
		_ = s.countCrowds(ctx)
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait + rand.N(wait/2)):
		}
	}
}

func (s *Store) countCrowds(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.options.CallTimeout)
	defer cancel()
	processes := make(map[string]int)
	_, err := list(ctx, s.pool, func(row pgx.CollectableRow) (any, error) {
		var queue string
		var n int
		err := row.Scan(&queue, &n)
		processes[queue] = n
		return nil, err
	}, crowdsSQL, crowdFirst)
	if err == nil {
		s.crowds.set(processes)
	}
	return err
}

// tellTaken reports to other processes the queues whose jobs a claim has all taken. Before holds each queue's count
// of signals when the claim began.
func (s *Store) tellTaken(request sluice.ClaimRequest, jobs []*sluice.Claim, before map[string]int) {
	if len(before) == 0 || len(jobs) == 0 || len(jobs) == request.Limit {
		return
	}
	got := make(map[string]int)
	for _, c := range jobs {
		got[c.Queue]++
	}
	limits := limitsOf(request)
	for queue, n := range got {
		if n < limits[queue] && s.crowds.takes(queue, before[queue]) {
			s.notifier.taken(queue)
		}
	}
}

// putOff holds the delayed looks of a process.
type putOff struct {
	ctx    context.Context
	crowds *crowds
	signal func(sluice.Signal)

	mu    sync.Mutex
	looks map[string]delayed // by queue
}

// delayed is a look whose delay first began at since.
type delayed struct {
	timer *time.Timer
	since time.Time
}

// hear passes the signal of a queue on, at once or delayed.
func (p *putOff) hear(signal sluice.Signal) {
	wait, busy := time.Duration(0), false
	if signal.Queue != "" {
		wait, busy = p.crowds.signalled(signal.Queue)
	}
	if wait == 0 {
		p.signal(signal)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if look, waits := p.looks[signal.Queue]; waits {
		if busy && time.Since(look.since)+wait < crowdMost {
			look.timer.Reset(wait)
		}
		return // a look comes soon
	}
	p.looks[signal.Queue] = delayed{since: time.Now(), timer: time.AfterFunc(wait, func() {
		p.drop(signal.Queue)
		if p.ctx.Err() == nil {
			p.signal(signal)
		}
	})}
}

// drop cancels a delayed look, because another process has taken the jobs.
func (p *putOff) drop(queue string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if look, waits := p.looks[queue]; waits {
		look.timer.Stop()
		delete(p.looks, queue)
	}
}
