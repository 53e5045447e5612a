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
	// crowdFirst is how many processes look at once when a queue is signalled, on average. If more serve it, the others put their
	// looks off, and whoever takes the jobs spares them these: of fifty that look at once, one gets the job.
	crowdFirst = 3
	// crowdRest is for how long the others wait: by then they have mostly heard that the jobs are taken.
	crowdRest = 6 * time.Millisecond
	// crowdStep is by how much longer on average each of them waits than the one before.
	crowdStep = 2 * time.Millisecond
	// crowdMost bounds by how much a look is put off.
	crowdMost = 200 * time.Millisecond
	// crowdCount is how often the processes are counted. The first time some may not have told of themselves yet.
	crowdCount      = 45 * time.Second
	crowdFirstCount = 5 * time.Second
)

// crowds knows of which queues a signal would wake many processes, and what was signalled of those.
type crowds struct {
	mu     sync.Mutex
	queues map[string]*crowd
	hears  bool // what this process tells of itself, too
}

// crowd is a queue that many processes serve, or did.
type crowd struct {
	processes int       // 0: few
	signals   int       // how often it was signalled
	last      time.Time // when it was signalled last
	told      int       // how often it had been when the claim began that was told of last
}

// set takes in how many processes serve each queue that many serve. What was noted of the others stays: a claim may be under way
// that the others will be told of.
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

// hear takes in whether the store hears signals. One that does not tells nobody that jobs are taken: it would not hear what
// came meanwhile.
func (c *crowds) hear(hears bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hears = hears
}

// signalled notes that a queue was signalled, and says by how much a look at it is to be put off.
func (c *crowds) signalled(queue string) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := c.queues[queue]
	if q == nil {
		return 0
	}
	q.signals++
	q.last = time.Now()
	if q.processes == 0 || rand.IntN(q.processes) < crowdFirst {
		return 0
	}
	return crowdRest + rand.N(min(time.Duration(q.processes)*crowdStep, crowdMost-crowdRest))
}

// before says how often the queues of a claim were signalled; nil: none of them is served by many.
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

// limitsOf gives the most jobs that a claim may take of each queue.
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

// takes notes that a claim has taken all jobs of a queue, which had been signalled so often when it began. It reports whether
// others may have put off their looks.
func (c *crowds) takes(queue string, signals int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := c.queues[queue]
	if q == nil || !c.hears || time.Since(q.last) > crowdMost {
		return false
	}
	q.told = signals
	return true
}

// missed reports whether a queue was signalled since the claim began that others have been told of by now: they have
// dropped looks that were not for nothing.
func (c *crowds) missed(queue string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := c.queues[queue]
	return q != nil && q.signals > q.told
}

// counting counts the processes that serve each queue, until ctx ends. What goes wrong leaves what was counted before.
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

// tellTaken tells the others of queues of which a claim has taken all jobs. Before says how often each was signalled when it
// began.
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

// putOff is the looks that a process has put off.
type putOff struct {
	ctx    context.Context
	crowds *crowds
	signal func(sluice.Signal)

	mu    sync.Mutex
	looks map[string]*time.Timer // by queue
}

// hear passes the signal of a queue on, at once or later.
func (p *putOff) hear(signal sluice.Signal) {
	wait := time.Duration(0)
	if signal.Queue != "" {
		wait = p.crowds.signalled(signal.Queue)
	}
	if wait == 0 {
		p.signal(signal)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.looks[signal.Queue] != nil {
		return // it comes soon
	}
	p.looks[signal.Queue] = time.AfterFunc(wait, func() {
		p.drop(signal.Queue)
		if p.ctx.Err() == nil {
			p.signal(signal)
		}
	})
}

// drop forgets a look that was put off, which another process has made needless.
func (p *putOff) drop(queue string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if look := p.looks[queue]; look != nil {
		look.Stop()
		delete(p.looks, queue)
	}
}
