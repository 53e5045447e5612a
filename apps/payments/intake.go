package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-queue/sluice/apps/payments/domain"
	"github.com/sluice-queue/sluice/apps/payments/kafka"
	"github.com/sluice-queue/sluice/apps/payments/payment"
	"github.com/sluice-queue/sluice/apps/payments/service"
)

// kafkaFlags adds the flags of the Kafka consumer. Without brokers there will be none.
func kafkaFlags(flags *flag.FlagSet) *kafka.Options {
	o := &kafka.Options{Queue: payment.Queue}
	split := func(text string) error {
		o.Brokers = slices.DeleteFunc(strings.Split(text, ","), func(broker string) bool { return broker == "" })
		return nil
	}
	_ = split(os.Getenv("PAYMENTS_KAFKA")) // it never fails
	flags.Func("kafka", "take payments in from Kafka: `host:port,…` of its brokers; PAYMENTS_KAFKA", split)
	flags.StringVar(&o.Topic, "kafka-topic", "payments", "the topic to read")
	flags.StringVar(&o.Group, "kafka-group", "sluice-payments", "the consumer group, the same for all processes that share the topic")
	flags.StringVar(&o.DeadLetters, "kafka-dead-letters", "", "the topic of messages that cannot become a job (default: the topic with .dead-letter)")
	flags.IntVar(&o.MaxWaiting, "kafka-max-waiting", 1_000_000, "pause the topic while so many payments wait")
	return o
}

// takeIn reads payments from Kafka until ctx ends.
func takeIn(ctx context.Context, s *service.Service, o kafka.Options) error {
	i := slices.IndexFunc(s.Domains, func(d domain.Domain) bool { return d.Queue == o.Queue })
	submit := func(ctx context.Context, items []json.RawMessage) (domain.Result, error) {
		return s.Domains[i].Submit(ctx, s.Temporal, items)
	}
	consumer, err := kafka.New(s.Books.Store, submit, o)
	if err != nil {
		return err
	}
	if err := prometheus.Register(consumer); err != nil {
		return fmt.Errorf("register the metrics of Kafka: %w", err)
	}
	defer prometheus.Unregister(consumer)
	consumer.Run(ctx)
	return nil
}
