package postgres_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/postgres"
	"github.com/sluice-queue/sluice/worker"
)

// Order is the payload of the examples.
type Order struct {
	Article string `json:"article"`
}

var Orders = sluice.QueueOf[Order]("orders")

// An order and its job are stored together or not at all. The example has no output, because it needs a server. The
// tests of this package do the same against a server.
func ExampleStore_InTx() {
	ctx := context.Background()
	store, err := postgres.Open(ctx, os.Getenv("DATABASE_URL"), postgres.Options{Migrate: true})
	if err != nil {
		log.Fatal(err)
	}
	client := sluice.NewClient(store, sluice.ClientOptions{})

	err = pgx.BeginFunc(ctx, store.Pool(), func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "insert into shop_order (article) values ($1)", "lamp"); err != nil {
			return err
		}
		_, err := Orders.Enqueue(ctx, client.Within(store.InTx(tx)), Order{"lamp"}, sluice.EnqueueOptions{})
		return err
	})
	fmt.Println(err)
}

// The effect of a job and its completion commit together.
func ExampleCompleteTx() {
	ctx := context.Background()
	store, err := postgres.Open(ctx, os.Getenv("DATABASE_URL"), postgres.Options{Migrate: true})
	if err != nil {
		log.Fatal(err)
	}
	w := worker.New(store, worker.Options{Slots: 100})
	worker.Handle(w, Orders, func(ctx context.Context, job *worker.Job[Order]) error {
		return pgx.BeginFunc(ctx, store.Pool(), func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "insert into shipment (article) values ($1)", job.Payload.Article); err != nil {
				return err
			}
			return postgres.CompleteTx(ctx, tx, job.Claim, nil)
		})
	}, worker.QueueOptions{})
	fmt.Println(w.Run(ctx))
}
