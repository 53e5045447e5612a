package kafka

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.temporal.io/sdk/temporal"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/apps/payments/domain"
)

// maxMessage bounds one message, maxPart those that go through phase A together, in bytes. JSON may be written six times
// as long on its way, and Temporal takes 2 MiB.
const (
	maxMessage = 64 << 10
	maxPart    = 256 << 10
)

// message is a record on its way.
type message struct {
	record *kgo.Record
	// item is what phase A gets: the value, with an id.
	item json.RawMessage
	// refusal says why it cannot become a job; empty: it can, as far as is known.
	refusal string
}

// parts reads records, and makes parts that phase A takes at once. Records of a partition stay in their order.
func parts(records []*kgo.Record) [][]*message {
	var all [][]*message
	size := 0
	for _, record := range records {
		m := read(record)
		if size += len(m.item); all == nil || size > maxPart {
			all, size = append(all, nil), len(m.item)
		}
		all[len(all)-1] = append(all[len(all)-1], m)
	}
	return all
}

// read makes a message of a record. A value without an id gets the record's place as its id, which is the same whenever it
// is read.
func read(record *kgo.Record) *message {
	m := &message{record: record}
	if len(record.Value) > maxMessage {
		m.refusal = fmt.Sprintf("%d bytes are more than %d", len(record.Value), maxMessage)
		return m
	}
	var fields map[string]json.RawMessage
	var named struct {
		ID json.RawMessage `json:"id"`
	}
	err := json.Unmarshal(record.Value, &fields)
	if err == nil {
		err = json.Unmarshal(record.Value, &named)
	}
	switch {
	case err != nil:
		m.refusal = "no JSON object: " + err.Error()
	case fields == nil:
		m.refusal = "no JSON object: null"
	case len(named.ID) > 0 && string(named.ID) != "null" && string(named.ID) != `""`:
		m.item = record.Value
	default:
		fields["id"], _ = json.Marshal(place(record)) // a string can be written
		m.item, _ = json.Marshal(fields)              // what was read can be written
	}
	return m
}

// place names a record for ever. A topic's name has no colon.
func place(record *kgo.Record) string {
	return fmt.Sprintf("%s:%d:%d", record.Topic, record.Partition, record.Offset)
}

// schedule runs phase A for messages, and notes which are refused. It reports false when ctx ends first.
func (c *Consumer) schedule(ctx context.Context, all []*message) bool {
	var messages []*message
	var items []json.RawMessage
	for _, m := range all {
		if m.refusal == "" {
			messages, items = append(messages, m), append(items, m.item)
		}
	}
	if len(items) == 0 {
		return true
	}
	var result domain.Result
	var refused error
	done := c.insist(ctx, "phase A", func(ctx context.Context) (err error) {
		result, err = c.submit(ctx, items)
		if permanent(err) {
			refused, err = err, nil
		}
		return err
	})
	switch {
	case !done:
		return false
	case refused != nil && len(messages) == 1:
		messages[0].refusal = refused.Error()
		return true
	case refused != nil: // one of them spoils it for all: its half is halved until it is alone
		half := len(messages) / 2
		return c.schedule(ctx, messages[:half]) && c.schedule(ctx, messages[half:])
	}
	for _, r := range result.Refused {
		messages[r.Line-1].refusal = r.Reason
	}
	c.waiting += result.Scheduled
	c.seen.count(scheduled, result.Scheduled)
	c.seen.count(duplicate, result.Duplicates)
	return true
}

// permanent reports whether phase A can never take the items, however often it is tried.
func permanent(err error) bool {
	var failed *temporal.ApplicationError
	return errors.Is(err, sluice.ErrInvalid) || errors.As(err, &failed) && failed.NonRetryable()
}
