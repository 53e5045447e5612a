// Package kafka takes submissions in from a Kafka topic, through phase A of a domain. Each message becomes exactly one
// job: an offset is committed only after the transaction that stored the jobs, and a message that is read again finds its
// payment stored.
package kafka

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/apps/payments/domain"
)

// Options say what to read and how much may wait.
type Options struct {
	// Brokers are the addresses (host:port) to begin with. Required.
	Brokers []string
	// Topic is read by the members of Group, each a share of its partitions. Both are required. The name of the topic has
	// at most 49 characters, so that it fits into the id of a payment.
	Topic, Group string
	// DeadLetters is the topic that gets what cannot become a job. It must exist. Default: Topic with ".dead-letter".
	DeadLetters string
	// Queue is Sluice's queue that the submissions end up in. Required.
	Queue string
	// MaxWaiting pauses the topic while so many jobs of the queue, or more, are ready or scheduled. Default 1,000,000.
	MaxWaiting int
	// Look is how often the jobs that wait are counted while messages come in. Default 10 s.
	Look time.Duration
	// Timeout is how long one try of phase A or of a dead letter may take. Default 30 s. It should be shorter than the
	// group's rebalance timeout, which is 60 s.
	Timeout time.Duration
	// Retry is how long to wait between tries while the store, Temporal or Kafka is away. Default: 1 s, doubled up to 30 s.
	Retry sluice.Backoff
	// Client has further options of the Kafka client, such as kgo.DialTLS and kgo.SASL. They come last.
	Client []kgo.Opt
	Logger *slog.Logger
}

// parting is how long a commit, or leaving the group, may take: both may happen when the program is about to end.
const parting = 5 * time.Second

// maxTopic is the longest name of a topic whose ids (topic:partition:offset) have the 80 characters that an id may have.
const maxTopic = 49

func (o *Options) check() error {
	switch {
	case len(o.Brokers) == 0:
		return errors.New("kafka: brokers are missing; name at least one as host:port")
	case o.Topic == "" || len(o.Topic) > maxTopic:
		return fmt.Errorf("kafka: topic: %.80q must have 1 to %d characters", o.Topic, maxTopic)
	case o.Group == "":
		return errors.New("kafka: group is missing; all members that share a topic name the same one")
	case o.Queue == "":
		return errors.New("kafka: queue is missing")
	case o.DeadLetters == o.Topic:
		return fmt.Errorf("kafka: dead letters: %q must be another topic than the one that is read", o.Topic)
	case o.MaxWaiting < 0 || o.Look < 0 || o.Timeout < 0:
		return errors.New("kafka: max waiting, look and timeout must not be negative")
	}
	return nil
}

func (o *Options) fill() {
	if o.DeadLetters == "" {
		o.DeadLetters = o.Topic + ".dead-letter"
	}
	if o.MaxWaiting == 0 {
		o.MaxWaiting = 1_000_000
	}
	if o.Look == 0 {
		o.Look = 10 * time.Second
	}
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	if o.Retry == (sluice.Backoff{}) {
		o.Retry = sluice.Backoff{Base: time.Second, Factor: 2, Max: 30 * time.Second, Jitter: time.Second}
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
}

// Submit runs phase A for some items, at most domain.MaxSubmission. It returns without an error only after the jobs of
// all items that it did not refuse were committed. The same items may be submitted again.
type Submit func(ctx context.Context, items []json.RawMessage) (domain.Result, error)

// Depths counts the jobs that wait. Every sluice.Store does.
type Depths interface {
	Depth(ctx context.Context, queue string, limit int) (sluice.Depth, error)
}

// Consumer is a member of the group. It is also a prometheus.Collector.
type Consumer struct {
	options Options
	submit  Submit
	depths  Depths
	client  *kgo.Client
	admin   *kadm.Client
	seen    *seen

	// waiting is how many jobs wait, as counted at lookedAt, and those that this consumer added since.
	waiting  int
	lookedAt time.Time
}

// New makes a member. It reaches for Kafka only in Run.
func New(depths Depths, submit Submit, options Options) (*Consumer, error) {
	if err := options.check(); err != nil {
		return nil, err
	}
	options.fill()
	c := &Consumer{options: options, submit: submit, depths: depths, seen: newSeen()}
	client, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(options.Brokers...), kgo.ConsumeTopics(options.Topic), kgo.ConsumerGroup(options.Group),
		kgo.DisableAutoCommit(),                      // offsets follow the jobs, never the clock
		kgo.BlockRebalanceOnPoll(),                   // what was read is stored and committed before a partition moves
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), // a payment of an aborted transaction is none
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, all map[string][]int32) { c.seen.own(all[options.Topic]) }),
		kgo.OnPartitionsRevoked(func(_ context.Context, _ *kgo.Client, all map[string][]int32) { c.seen.disown(all[options.Topic]) }),
		kgo.WithLogger(logger{options.Logger}),
	}, options.Client...)...)
	if err != nil {
		return nil, fmt.Errorf("kafka: make a client of %q: %w", options.Brokers, err)
	}
	c.client, c.admin = client, kadm.NewClient(client)
	return c, nil
}

// Run reads messages and stores their jobs until ctx ends. It waits out whatever is away, and then leaves the group.
// A consumer runs once.
func (c *Consumer) Run(ctx context.Context) {
	defer c.leave()
	if !c.insist(ctx, "find the topics", c.find) {
		return
	}
	for c.waitForRoom(ctx) {
		fetches := c.client.PollRecords(ctx, domain.MaxSubmission)
		if ctx.Err() != nil || fetches.IsClientClosed() {
			return
		}
		if !c.readable(ctx, fetches) {
			return
		}
		for _, part := range parts(fetches.Records()) {
			if !c.take(ctx, part) {
				return
			}
		}
		c.client.AllowRebalance()
	}
}

// find looks whether both topics exist: the client waits silently for a topic whose name is misspelt, and the first
// message without a topic for dead letters would hold up all others.
func (c *Consumer) find(ctx context.Context) error {
	topics, err := c.admin.ListTopics(ctx, c.options.Topic, c.options.DeadLetters)
	if err != nil {
		return fmt.Errorf("ask the brokers %q: %w", c.options.Brokers, err)
	}
	var missing error
	for _, name := range []string{c.options.Topic, c.options.DeadLetters} {
		if err := topics[name].Err; err != nil {
			missing = errors.Join(missing, fmt.Errorf("topic %q: %w; make it, or name another", name, err))
		}
	}
	return missing
}

// leave gives the partitions back, so that others need not wait until this member is missed. Kafka may be away just then.
func (c *Consumer) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), parting)
	defer cancel()
	c.client.AllowRebalance()
	if err := c.client.LeaveGroupContext(ctx); err != nil {
		c.options.Logger.Warn("kafka: group not left; its other members take over when this one is missed", "group", c.options.Group, "error", err)
	}
	c.client.Close()
}

// readable logs what could not be fetched, and waits a little if that is all there is. It reports false when ctx ends.
func (c *Consumer) readable(ctx context.Context, fetches kgo.Fetches) bool {
	fetches.EachError(func(topic string, partition int32, err error) {
		c.options.Logger.Warn("kafka: partition not readable, retrying", "topic", topic, "partition", partition, "error", err)
	})
	if !fetches.Empty() || fetches.Err() == nil {
		return true
	}
	return wait(ctx, c.options.Retry.Delay(1))
}

// take stores the jobs of some messages, then their dead letters, then commits their offsets. It reports false when ctx
// ends before all that is done.
func (c *Consumer) take(ctx context.Context, messages []*message) bool {
	if !c.schedule(ctx, messages) || !c.bury(ctx, messages) {
		return false
	}
	c.commit(ctx, messages)
	return true
}

// commit tells the group how far this member has come. A commit that fails needs no other try: the next one covers it, or
// the messages are read again and found stored.
func (c *Consumer) commit(ctx context.Context, messages []*message) {
	var records []*kgo.Record
	for _, m := range messages {
		if c.seen.owns(m.record.Partition) { // the next owner must not be sent back
			records = append(records, m.record)
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), parting) // at shutdown too
	defer cancel()
	if err := c.client.CommitRecords(ctx, records...); err != nil {
		c.options.Logger.Warn("kafka: offsets not committed; the messages may be read again and will be duplicates",
			"topic", c.options.Topic, "group", c.options.Group, "error", err)
	}
}

// insist tries until it succeeds, and reports false when ctx ends first. While it fails the topic is paused, and members
// may come and go.
func (c *Consumer) insist(ctx context.Context, task string, try func(ctx context.Context) error) bool {
	for n := 1; ; n++ {
		limited, cancel := context.WithTimeout(ctx, c.options.Timeout)
		err := try(limited)
		cancel()
		if err == nil {
			c.resume(byOutage)
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		c.pause(byOutage)
		c.client.AllowRebalance()
		delay := c.options.Retry.Delay(n)
		c.options.Logger.Warn("kafka: "+task+" failed, retrying; nothing is committed meanwhile", "topic", c.options.Topic, "try", n, "wait", delay, "error", err)
		if !wait(ctx, delay) {
			return false
		}
	}
}

// wait reports false when ctx ends first.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
