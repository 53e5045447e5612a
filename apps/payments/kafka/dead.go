package kafka

import (
	"context"
	"errors"
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// The headers of a dead letter, after those of the message itself.
const (
	// HeaderReason says why the message could not become a job.
	HeaderReason = "dead-letter-reason"
	// HeaderTopic, HeaderPartition and HeaderOffset say where the message is.
	HeaderTopic     = "original-topic"
	HeaderPartition = "original-partition"
	HeaderOffset    = "original-offset"
	// HeaderLeftOut has the length in bytes of a value that the dead-letter topic does not take.
	HeaderLeftOut = "dead-letter-left-out"
)

// bury produces the dead letters of the refused messages, and waits until all replicas in sync have them. It reports false
// when ctx ends first.
func (c *Consumer) bury(ctx context.Context, messages []*message) bool {
	for _, m := range messages {
		if m.refusal == "" {
			continue
		}
		done := c.insist(ctx, "produce to "+c.options.DeadLetters, func(ctx context.Context) error {
			err := c.client.ProduceSync(ctx, c.letter(m)).FirstErr()
			if errors.Is(err, kerr.MessageTooLarge) {
				err = c.client.ProduceSync(ctx, c.note(m)).FirstErr()
			}
			return err
		})
		if !done {
			return false
		}
		c.seen.count(deadLetter, 1)
		c.options.Logger.Warn("kafka: message refused", "topic", m.record.Topic, "partition", m.record.Partition, "offset", m.record.Offset,
			"dead_letters", c.options.DeadLetters, "reason", m.refusal)
	}
	return true
}

// letter is the message as it was, and why and where.
func (c *Consumer) letter(m *message) *kgo.Record {
	letter := c.note(m)
	letter.Key, letter.Value = m.record.Key, m.record.Value
	letter.Headers = append(append([]kgo.RecordHeader{}, m.record.Headers...), letter.Headers[:len(letter.Headers)-1]...)
	return letter
}

// note is a dead letter that says only why and where.
func (c *Consumer) note(m *message) *kgo.Record {
	header := func(name, value string) kgo.RecordHeader { return kgo.RecordHeader{Key: name, Value: []byte(value)} }
	return &kgo.Record{Topic: c.options.DeadLetters, Headers: []kgo.RecordHeader{
		header(HeaderReason, m.refusal), header(HeaderTopic, m.record.Topic),
		header(HeaderPartition, strconv.Itoa(int(m.record.Partition))), header(HeaderOffset, strconv.FormatInt(m.record.Offset, 10)),
		header(HeaderLeftOut, strconv.Itoa(len(m.record.Value))),
	}}
}
