package postgres

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/internal/event"
)

const (
	// channel is the channel of signals for LISTEN and NOTIFY.
	channel = "sluice"
	// notifyInterval is the least time between two notifications of one process. A NOTIFY in every commit would
	// cost most of the throughput, so it is sent outside of commits.
	notifyInterval = 3 * time.Millisecond
	// txNotifyInterval is the least time between two notifications per queue inside callers' transactions.
	// Transactions in between are notified from outside, this much later.
	txNotifyInterval = 100 * time.Millisecond
	// carryShare limits how long enqueues wait because they carry signals: the server lets only one transaction with a
	// notification commit at a time. The next one comes only after carryShare times the duration of the last.
	carryShare = 5
	// refusedPause is the time without carried signals after the server refused one: its queue of notifications is
	// full, because somebody who listens does not read.
	refusedPause = time.Minute
	// hearInterval is the average time between two equal signals that are passed on or sent. Up to hearAtOnce may
	// follow each other at once, so that occasional jobs do not wait.
	hearInterval = 10 * time.Millisecond
	hearAtOnce   = 5
	// aliveChannel carries the questions whether a store still hears. They do not wake programs that listen to
	// channel alone.
	aliveChannel = channel + "_alive"
	aliveSQL     = "select pg_notify('" + aliveChannel + "', '')"
	// takenChannel carries the message that a process has taken all jobs of a queue, so that others drop their
	// looks.
	takenChannel = channel + "_taken"
	notifySQL    = "select pg_notify('" + channel + "', n) from unnest($1::text[]) as n"
	// notifyTakenSQL sends signals of jobs first, because the jobs were there before they were taken.
	notifyTakenSQL = notifySQL + " union all select pg_notify('" + takenChannel + "', n) from unnest($2::text[]) as n"
)

// signalQueues wakes workers of these queues, in this process at once and in others by NOTIFY.
func (s *Store) signalQueues(queues map[string]bool) {
	for queue := range queues {
		s.signal(sluice.Signal{Queue: queue})
	}
}

func (s *Store) signal(signal sluice.Signal) {
	s.signalHere(signal)
	s.notifier.add(signal)
}

// signalHere wakes workers of this process only.
func (s *Store) signalHere(signal sluice.Signal) {
	if signal.Queue != "" {
		s.crowds.signalled(signal.Queue) // this process looks at once
	}
	s.signals.Send(signal)
}

// unblocked counts jobs that were cancelled because another failed, and signals them and the jobs that became
// claimable.
func (s *Store) unblocked(event sluice.Event, rows []moved) {
	if event == sluice.EventCancel {
		s.acted(event, rows)
		return
	}
	s.signalMoved(event, rows)
}

// acted counts and signals the moves that no claim caused.
func (s *Store) acted(event sluice.Event, rows []moved) {
	for _, m := range rows {
		if m.from != letGo {
			s.tally.Moved(m.queue, "", cmp.Or(m.event, event), 1)
		}
	}
	s.signalMoved(event, rows)
}

// signalMoved wakes workers after a move: there are jobs to claim, or a claim is gone.
func (s *Store) signalMoved(event sluice.Event, rows []moved) {
	queues := make(map[string]bool)
	for _, m := range rows {
		if m.from != letGo && sluice.MoveOf(cmp.Or(m.event, event)).To.Finished() && s.awaits.Take(m.id) {
			s.signal(sluice.Signal{Ended: m.id})
		}
		switch {
		case m.from == letGo, sluice.MoveOf(event).To == sluice.StateQueued, event == sluice.EventReschedule, event == audit.EventEdit:
			queues[m.queue] = true
			s.lowWater.disturb(m.queue)
		case event == sluice.EventCancel && m.from == string(sluice.StateClaimed):
			s.signal(sluice.Signal{Cancelled: m.id})
		}
	}
	s.signalQueues(queues)
}

// message is a notification to other processes.
type message struct{ channel, text string }

// notifier sends signals to other processes, many in one statement.
type notifier struct {
	store  *Store
	sender string // so that a process knows its own signals
	wake   chan struct{}
	quit   context.CancelFunc
	done   chan struct{}

	mu      sync.Mutex
	pending map[message]bool
	sent    pace[message]
	turns   pace[struct{}]       // of statements and enqueues that carry messages
	inTx    map[string]time.Time // by queue: when a caller's transaction last carried a notification
	carries time.Time            // when an enqueue of the store may carry a signal again
}

func startNotifier(s *Store) *notifier {
	ctx, quit := context.WithCancel(context.Background())
	n := &notifier{
		store: s, sender: sluice.NewID().String(), wake: make(chan struct{}, 1), quit: quit, done: make(chan struct{}),
		pending: make(map[message]bool), sent: make(pace[message]), turns: make(pace[struct{}]), inTx: make(map[string]time.Time),
	}
	go n.run(ctx)
	return n
}

func (n *notifier) stop() {
	n.quit()
	<-n.done
}

// add queues a signal.
func (n *notifier) add(signal sluice.Signal) { n.put(n.message(signal)) }

// message returns a signal as a notification. Its text is sender, kind and name, separated by blanks.
func (n *notifier) message(signal sluice.Signal) message {
	text := n.sender + " queue " + signal.Queue
	if !signal.Cancelled.IsZero() {
		text = n.sender + " cancelled " + signal.Cancelled.String()
	} else if !signal.Ended.IsZero() {
		text = n.sender + " ended " + signal.Ended.String()
	}
	return message{channel, text}
}

// taken queues the message that all jobs of a queue were taken.
func (n *notifier) taken(queue string) { n.put(message{takenChannel, n.sender + " " + queue}) }

func (n *notifier) put(m message) {
	n.mu.Lock()
	n.pending[m] = true
	n.mu.Unlock()
	n.rouse()
}

// rouse makes the notifier check its pending messages.
func (n *notifier) rouse() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// signalInTx makes a caller's transaction wake workers when it commits. The store cannot see the commit, so a
// second signal follows later.
func (s *Store) signalInTx(ctx context.Context, tx rowsQuerier, queues map[string]bool) error {
	if texts := s.notifier.dueInTx(queues); len(texts) > 0 {
		if err := exec(ctx, tx, notifySQL, texts); err != nil {
			return err
		}
	}
	time.AfterFunc(txNotifyInterval, func() {
		if !s.closed.Load() {
			s.signalQueues(queues)
		}
	})
	return nil
}

// dueInTx returns the notifications that a transaction may carry. Their sender is no process, so that the workers
// of this process heed them, too.
func (n *notifier) dueInTx(queues map[string]bool) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var texts []string
	now := time.Now()
	for queue := range queues {
		if now.Sub(n.inTx[queue]) >= txNotifyInterval {
			n.inTx[queue] = now
			texts = append(texts, "tx queue "+queue)
		}
	}
	return texts
}

// carry returns the signal of a queue that an enqueue sends by its own commit. Others hear it one commit sooner than
// if it was sent afterwards. "": the enqueue must not carry it.
func (n *notifier) carry(queue string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	now, m := time.Now(), n.message(sluice.Signal{Queue: queue})
	if now.Before(n.carries) || n.pending[m] || n.sent.left(m, now) > 0 || n.turns.wait(struct{}{}, now) > 0 {
		return ""
	}
	n.sent.wait(m, now)
	n.carries = now.Add(notifyInterval)
	return m.text
}

// carried sets the pause after an enqueue that carried a signal.
func (n *notifier) carried(pause time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.carries = time.Now().Add(max(pause, notifyInterval))
}

func (n *notifier) run(ctx context.Context) {
	defer close(n.done)
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.wake:
		}
		for wait := n.turn(); wait > 0; wait = n.turn() {
			if pause.Reset(wait); !passes(ctx, pause.C) {
				return
			}
		}
		n.send(ctx)
		pause.Reset(notifyInterval)
		if !passes(ctx, pause.C) {
			return
		}
	}
}

// passes waits for an instant. It reports false if ctx ends first.
func passes(ctx context.Context, instant <-chan time.Time) bool {
	select {
	case <-ctx.Done():
		return false
	case <-instant:
		return true
	}
}

// turn returns how long the next statement must wait: every process that listens pays for each statement of any.
func (n *notifier) turn() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.turns.wait(struct{}{}, time.Now())
}

// send sends the pending messages. Messages that cannot be sent are dropped: polling finds the jobs.
func (n *notifier) send(ctx context.Context) {
	texts := n.due()
	if len(texts) == 0 {
		return
	}
	statement, arguments := notifySQL, []any{texts[channel]}
	if taken := texts[takenChannel]; len(taken) > 0 {
		statement, arguments = notifyTakenSQL, append(arguments, taken)
	}
	ctx, cancel := context.WithTimeout(ctx, n.store.options.CallTimeout)
	defer cancel()
	if err := exec(ctx, n.store.pool, statement, arguments...); err != nil && ctx.Err() == nil {
		n.store.log.Emit(event.NotNotified, "", "error", err)
	}
}

// due takes the messages that may be sent now, by channel. A message that was sent often just now stays for later,
// because other processes would not heed it.
func (n *notifier) due() map[string][]string {
	n.mu.Lock()
	defer n.mu.Unlock()
	texts := make(map[string][]string)
	now := time.Now()
	n.sent.forget(now)
	for m := range n.pending {
		if n.sent.wait(m, now) > 0 {
			continue
		}
		delete(n.pending, m)
		texts[m.channel] = append(texts[m.channel], m.text)
	}
	if len(n.pending) > 0 {
		n.rouse()
	}
	return texts
}

// Watch calls signal for each signal of this process and, through LISTEN, of other processes, until ctx ends.
// Behind a pooler in transaction mode, Watch hears only this process. NOTIFY passes through such a pooler, so
// processes with direct connections hear it.
func (s *Store) Watch(ctx context.Context, signal func(sluice.Signal)) error {
	if err := sluice.CheckGiven("signal", signal); err != nil {
		return err
	}
	var listening sync.WaitGroup
	if !s.pooled {
		listening.Go(func() { s.listen(ctx, signal) })
	}
	s.signals.Listen(ctx, signal)
	listening.Wait()
	return nil
}

// listen keeps a listening connection, and makes a new one when it is lost.
func (s *Store) listen(ctx context.Context, signal func(sluice.Signal)) {
	wait := 100 * time.Millisecond
	for ctx.Err() == nil {
		begun := time.Now()
		err := s.listenOnce(ctx, signal)
		if ctx.Err() != nil {
			return
		}
		s.log.Emit(event.SignalsLost, "", "error", err, "retry_in", wait)
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		if wait = min(2*wait, 5*time.Second); time.Since(begun) > time.Minute {
			wait = 100 * time.Millisecond
		}
	}
}

func (s *Store) listenOnce(ctx context.Context, signal func(sluice.Signal)) error {
	conn, err := s.listening(ctx)
	if err != nil {
		return err
	}
	defer hangUp(conn)
	ctx, quit := context.WithCancelCause(ctx)
	hearing := newHearing(s, signal)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer quit(nil)
	watching.Go(func() { hearing.watch(ctx, func() { quit(errDeaf) }) })
	watching.Go(func() { s.counting(ctx) })
	signal(sluice.Signal{}) // for signals that were sent while no connection listened
	signal = calm(ctx, signal)
	looks := &putOff{ctx: ctx, crowds: &s.crowds, signal: signal, looks: make(map[string]delayed)}
	for {
		notification, err := conn.WaitForNotification(ctx)
		if err != nil {
			return cmp.Or(context.Cause(ctx), err)
		}
		hearing.note()
		if notification.Channel == takenChannel {
			s.hearTaken(notification.Payload, looks)
		} else if ids := awaitedIn(notification.Payload); len(ids) > 0 {
			s.awaits.Add(ids, time.Now())
		} else if received, ok := s.notifier.parse(notification.Payload); ok {
			looks.hear(received)
		}
	}
}

// hearTaken drops the look at a queue whose jobs another process has all taken. The sender hears its own message,
// too. If jobs came after its claim began, the others have dropped looks at these jobs, and the sender signals
// again.
func (s *Store) hearTaken(text string, looks *putOff) {
	sender, queue, _ := strings.Cut(text, " ")
	if sender != s.notifier.sender {
		looks.drop(queue)
	} else if s.crowds.missed(queue) {
		s.signal(sluice.Signal{Queue: queue})
	}
}

// errDeaf ends a connection that hears nothing.
var errDeaf = errors.New("the connection hears no notification, not even its own")

// manyPaced is how many kinds of signals are kept before old ones are dropped.
const manyPaced = 1000

// calm passes signals on at the rate of pace. A signal that comes sooner is passed on later, once. Any program that
// can connect to the database can send signals, and each may make a process look for jobs.
func calm(ctx context.Context, signal func(sluice.Signal)) func(sluice.Signal) {
	var mu sync.Mutex
	passed := make(pace[sluice.Signal])
	later := make(map[sluice.Signal]bool)
	return func(received sluice.Signal) {
		mu.Lock()
		if later[received] {
			mu.Unlock()
			return
		}
		now := time.Now()
		if len(passed) > manyPaced {
			passed.forget(now)
		}
		wait := passed.wait(received, now)
		if wait > 0 {
			later[received] = true
		}
		mu.Unlock()
		if wait == 0 {
			signal(received)
			return
		}
		time.AfterFunc(wait, func() {
			mu.Lock()
			delete(later, received)
			_ = passed.wait(received, time.Now()) // counts this signal
			mu.Unlock()
			if ctx.Err() == nil {
				signal(received)
			}
		})
	}
}

// listening makes a connection that listens.
func (s *Store) listening(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, s.options.CallTimeout)
	defer cancel()
	conn, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	for _, heard := range []string{aliveChannel, takenChannel, channel} {
		if _, err := conn.Exec(ctx, "listen "+heard); err != nil {
			hangUp(conn)
			return nil, err
		}
	}
	return conn, nil
}

// connect makes a connection beside the pool, as the pool makes its own.
func (s *Store) connect(ctx context.Context) (*pgx.Conn, error) {
	config := s.pool.Config()
	if config.BeforeConnect != nil {
		if err := config.BeforeConnect(ctx, config.ConnConfig); err != nil {
			return nil, err
		}
	}
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil || config.AfterConnect == nil {
		return conn, err
	}
	if err := config.AfterConnect(ctx, conn); err != nil {
		hangUp(conn)
		return nil, err
	}
	return conn, nil
}

// hangUp closes a connection, and waits at most 5 s for a silent server.
func hangUp(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}

// parse reads a signal of another process.
func (n *notifier) parse(text string) (sluice.Signal, bool) {
	sender, rest, _ := strings.Cut(text, " ")
	kind, name, ok := strings.Cut(rest, " ")
	if !ok || sender == n.sender {
		return sluice.Signal{}, false
	}
	switch kind {
	case "queue":
		return sluice.Signal{Queue: name}, true
	case "cancelled":
		id, err := sluice.ParseID(name)
		return sluice.Signal{Cancelled: id}, err == nil
	case "ended":
		id, err := sluice.ParseID(name)
		return sluice.Signal{Ended: id}, err == nil
	}
	return sluice.Signal{}, false
}
