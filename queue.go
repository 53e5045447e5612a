package sluice

import (
	"context"
	"encoding/json"
	"fmt"
)

// TypedQueue is a queue whose payloads are values of one Go type. [QueueOf] makes it. Keep it in a package that
// both the producer and the worker import.
type TypedQueue[T any] struct {
	name string
}

// QueueOf names a queue and the type of its payloads:
//
//	var Payments = sluice.QueueOf[Payment]("payments")
func QueueOf[T any](name string) TypedQueue[T] { return TypedQueue[T]{name: name} }

// Name returns the queue's name.
func (q TypedQueue[T]) Name() string { return q.name }

// NewJob makes a job of the queue, for [Client.EnqueueMany]. A payload that JSON cannot express is an [ErrInvalid].
func (q TypedQueue[T]) NewJob(payload T, options EnqueueOptions) (NewJob, error) {
	text, err := json.Marshal(payload)
	if err != nil {
		return NewJob{}, invalid("payload", fmt.Sprintf("a %T cannot be written as JSON: %v", payload, err))
	}
	return NewJob{Queue: q.name, Payload: text, EnqueueOptions: options, written: true}, nil
}

// Enqueue stores one job of the queue, like [Client.Enqueue].
func (q TypedQueue[T]) Enqueue(ctx context.Context, client *Client, payload T, options EnqueueOptions) (Receipt, error) {
	if err := CheckGiven("client", client); err != nil {
		return Receipt{}, err
	}
	job, err := q.NewJob(payload, options)
	if err != nil {
		return Receipt{}, err
	}
	return client.Enqueue(ctx, job)
}

// Decode reads a payload. A payload that does not fit the type is an [ErrInvalid].
func (q TypedQueue[T]) Decode(payload json.RawMessage) (T, error) {
	var value T
	if err := json.Unmarshal(payload, &value); err != nil {
		return value, invalid("payload", fmt.Sprintf("it does not fit %T: %v", value, err))
	}
	return value, nil
}
