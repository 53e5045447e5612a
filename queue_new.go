package sluice

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"
)

// newQueues lets one caller at a time make a new queue. The other callers wait, and then find the queue stored.
// Many goroutines may share newQueues.
type newQueues struct {
	mu       sync.Mutex
	making   map[string]chan struct{} // closed when the caller who makes the queue has ended
	admitted map[string]time.Time     // when the store last admitted a new queue in a transaction
}

// newNewQueues makes newQueues.
func newNewQueues() *newQueues {
	return &newQueues{making: make(map[string]chan struct{}), admitted: make(map[string]time.Time)}
}

// claim divides queues into mine, which the caller must make, and theirs, which others are making. Each channel of
// ended closes when such a caller has ended.
func (n *newQueues) claim(names []string) (mine, theirs []string, ended []chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, name := range names {
		if made, under := n.making[name]; under {
			theirs, ended = append(theirs, name), append(ended, made)
			continue
		}
		n.making[name] = make(chan struct{})
		mine = append(mine, name)
	}
	return mine, theirs, ended
}

// release ends the making of queues, after success or failure.
func (n *newQueues) release(names []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, name := range names {
		close(n.making[name])
		delete(n.making, name)
	}
}

// noteAdmitted notes that the store admitted queues in a transaction.
func (n *newQueues) noteAdmitted(names []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	for name, at := range n.admitted {
		if now.Sub(at) >= SettingsInterval {
			delete(n.admitted, name)
		}
	}
	for _, name := range names {
		n.admitted[name] = now
	}
}

// notAdmitted leaves out the queues that the store admitted within the last SettingsInterval.
func (n *newQueues) notAdmitted(names []string) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.DeleteFunc(names, func(name string) bool { return time.Since(n.admitted[name]) < SettingsInterval })
}

// admit makes the new queues that jobs name, and returns the error of each refused queue.
//
// Inside the caller's transaction nobody else may write, because SQLite has one writer. There the store only admits
// the queues, and upkeep stores their settings later.
func (c *Client) admit(ctx context.Context, jobs []NewJob, failed map[int]error) (map[string]error, error) {
	names := queuesOf(jobs, failed)
	fresh, err := c.notStored(ctx, names)
	if err != nil || len(fresh) == 0 {
		return nil, err
	}
	refused := make(map[string]error)
	if c.inTx {
		fresh = c.fresh.notAdmitted(fresh)
		err := c.askFor(ctx, fresh, refused)
		c.fresh.noteAdmitted(slices.DeleteFunc(fresh, func(name string) bool { return err != nil || refused[name] != nil }))
		return refused, err
	}
	mine, theirs, ended := c.fresh.claim(fresh)
	if err := c.makeQueues(ctx, mine, refused); err != nil {
		return nil, err
	}
	for _, made := range ended {
		select {
		case <-made:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if theirs, err = c.notStored(ctx, theirs); err != nil { // their maker failed, or the store refused them
		return nil, err
	}
	return refused, c.askFor(ctx, theirs, refused)
}

// notStored returns the queues that are not stored, as far as the client knows. It reads all that it must read
// together.
func (c *Client) notStored(ctx context.Context, names []string) ([]string, error) {
	c.settings.Expect(names...)
	var fresh []string
	for _, name := range names {
		queue, err := c.settings.queueBy(ctx, c.enqueuer, c.inTx, name)
		if err != nil {
			return nil, err
		}
		if queue.Version == 0 {
			fresh = append(fresh, name)
		}
	}
	return fresh, nil
}

// makeQueues makes queues that the caller has claimed, and reads them, so that waiting callers find them.
func (c *Client) makeQueues(ctx context.Context, names []string, refused map[string]error) error {
	if len(names) == 0 {
		return nil
	}
	defer c.fresh.release(names)
	if err := c.askFor(ctx, names, refused); err != nil {
		return err
	}
	_, err := c.notStored(ctx, names)
	return err
}

// askFor asks the store to admit queues, and adds the error of each refused queue.
func (c *Client) askFor(ctx context.Context, names []string, refused map[string]error) error {
	if len(names) == 0 {
		return nil
	}
	errs, err := c.enqueuer.Admit(ctx, names, Act{By: "sluice", Reason: "first job", ID: NewID()})
	if err != nil {
		return err
	}
	if !c.inTx {
		c.settings.Forget()
	}
	for i, err := range errs {
		if err != nil {
			refused[names[i]] = err
		}
	}
	return nil
}

// IsGroup reports whether a name is that of a group of queues, which gives them settings: `*`, the group of all, or a
// name that ends with `.*`. The queue mail.welcome belongs to `mail.*` and `*`.
//
// A new queue begins with the settings of its nearest group. When a group changes, its queues follow, except where
// they have values of their own. [Client.EnsureQueue] and [Client.ChangeSettings] store groups.
func IsGroup(name string) bool {
	prefix, is := strings.CutSuffix(name, "*")
	return is && len(name) <= maxQueueName && (prefix == "" || strings.HasSuffix(prefix, ".") && CheckOwnQueueName(prefix) == nil)
}

// GroupsOf returns the groups that a queue or a group may belong to, the nearest first. Internal queues have none.
func GroupsOf(queue string) (groups []string) {
	if IsInternalQueue(queue) {
		return nil
	}
	prefix := strings.TrimSuffix(queue, ".*")
	for at := strings.LastIndexByte(prefix, '.'); at > 0; at = strings.LastIndexByte(prefix, '.') {
		prefix = prefix[:at]
		groups = append(groups, prefix+".*")
	}
	if queue != "*" {
		groups = append(groups, "*")
	}
	return groups
}
