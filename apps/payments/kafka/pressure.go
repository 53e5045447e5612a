package kafka

import (
	"context"
	"time"
)

// cause is why the topic is paused.
type cause string

const (
	byDepth  cause = "depth"
	byOutage cause = "outage"
)

// waitForRoom pauses the topic while too many jobs wait, or while nobody can tell. It reports false when ctx ends.
func (c *Consumer) waitForRoom(ctx context.Context) bool {
	for ctx.Err() == nil {
		if !c.look(ctx) {
			return false
		}
		if c.waiting < c.options.MaxWaiting {
			c.resume(byDepth)
			return true
		}
		c.pause(byDepth)
		if !wait(ctx, c.options.Look) {
			return false
		}
	}
	return false
}

// look counts the jobs that wait. Counting costs the store something, so it is done seldom, and when there may be too many.
func (c *Consumer) look(ctx context.Context) bool {
	if c.waiting < c.options.MaxWaiting && !c.lookedAt.IsZero() && time.Since(c.lookedAt) < c.options.Look {
		return true
	}
	return c.insist(ctx, "count the jobs that wait", func(ctx context.Context) error {
		depth, err := c.depths.Depth(ctx, c.options.Queue, c.options.MaxWaiting)
		if err == nil {
			c.waiting, c.lookedAt = depth.Ready+depth.Scheduled, time.Now()
		}
		return err
	})
}

// pause stops fetching from all partitions of the topic, also from those that come to this member meanwhile. The member
// stays in the group.
func (c *Consumer) pause(why cause) {
	if !c.seen.pause(why) {
		return
	}
	c.client.PauseFetchTopics(c.options.Topic)
	c.options.Logger.Info("kafka: topic paused", "topic", c.options.Topic, "cause", why, "waiting", c.waiting, "max_waiting", c.options.MaxWaiting)
}

// resume ends what pause began for the same cause. Fetching goes on when no cause is left.
func (c *Consumer) resume(why cause) {
	ended, free := c.seen.resume(why)
	if !ended {
		return
	}
	if free {
		c.client.ResumeFetchTopics(c.options.Topic)
	}
	c.options.Logger.Info("kafka: topic resumed", "topic", c.options.Topic, "cause", why)
}
