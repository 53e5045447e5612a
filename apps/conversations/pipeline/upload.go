package pipeline

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ipfs/go-cid"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/apps/conversations/records"
	"github.com/sluice-queue/sluice/apps/conversations/stages"
	"github.com/sluice-queue/sluice/apps/conversations/upload"
	"github.com/sluice-queue/sluice/worker"
)

// Uploaded is the result of an upload.
type Uploaded struct {
	CID    string `json:"cid"`
	TxHash string `json:"tx_hash,omitempty"`
	Block  uint64 `json:"block"`
}

// upload brings a learning to IPFS and to the chain. How far it is, is stored after each step, and the signed transaction
// before it is sent; so a worker that dies anywhere leaves what the next one goes on from.
func (p *Pipeline) upload(ctx context.Context, job *worker.Job[stages.Upload]) error {
	to := job.Payload
	for _, endpoint := range []string{to.IPFSEndpoint, to.Chain.RPCURL} {
		if err := p.options.Approved.Check(endpoint); err != nil {
			return forGood(err)
		}
	}
	u, err := p.db.Upload(ctx, to.LearningID)
	if err != nil {
		return err
	}
	if u.Status == records.Confirmed {
		return finish(ctx, p, job, Skipped{true, "already-confirmed"}, nil)
	}
	if u.Status == "" {
		if u, err = p.toIPFS(ctx, to); err != nil {
			return err
		}
	}
	id, err := cid.Decode(u.CID)
	if err != nil {
		return forGood(fmt.Errorf("the stored CID of learning %s: %w", to.LearningID, err))
	}
	chain, err := p.chain(ctx, to.Chain)
	if err != nil {
		return err
	}
	if u.Status == records.InIPFS {
		known, err := chain.Known(ctx, id)
		if err != nil {
			return err
		}
		if known { // by another installation, which has learnt the same
			return p.confirm(ctx, job, u, 0)
		}
		if u, err = p.sign(ctx, chain, to.LearningID, u, id); err != nil {
			return err
		}
	}
	block, err := p.send(ctx, chain, u)
	if errors.Is(err, upload.ErrReplaced) || errors.Is(err, upload.ErrReverted) {
		return p.afterRefusal(ctx, job, chain, u, id, err)
	}
	if err != nil {
		return err
	}
	return p.confirm(ctx, job, u, block)
}

// toIPFS stores a learning at the node.
func (p *Pipeline) toIPFS(ctx context.Context, to stages.Upload) (records.Upload, error) {
	var u records.Upload
	learning, err := p.db.Learning(ctx, to.LearningID)
	if errors.Is(err, sluice.ErrNotFound) {
		return u, forGood(err)
	}
	if err != nil {
		return u, err
	}
	content, err := json.Marshal(struct { // what all the world may read, in a fixed order, so that its name is always the same
		Category string   `json:"category"`
		Title    string   `json:"title"`
		Content  string   `json:"content"`
		Tags     []string `json:"tags"`
	}{learning.Category, learning.Title, learning.Content, learning.Tags})
	if err != nil {
		return u, forGood(err)
	}
	id, err := upload.PutIPFS(ctx, p.http, to.IPFSEndpoint, content)
	if err != nil {
		return u, err
	}
	u = records.Upload{Status: records.InIPFS, CID: id.String()}
	return u, p.db.Transact(ctx, func(tx records.Tx) error { return tx.MarkInIPFS(ctx, to.LearningID, u.CID) })
}

// sign makes the transaction, with the account's next nonce, and stores it. Nothing was sent yet.
func (p *Pipeline) sign(ctx context.Context, chain *upload.Chain, learning string, u records.Upload, id cid.Cid) (records.Upload, error) {
	fees, err := chain.Fees(ctx, id)
	if err != nil {
		return u, err
	}
	account := chain.Account.Hex()
	err = p.db.Transact(ctx, func(tx records.Tx) error {
		next, err := tx.NextNonce(ctx, account)
		if err != nil {
			return err
		}
		u.Status, u.Nonce = records.Signed, max(next, fees.Nonce)
		var hash common.Hash
		if u.RawTx, hash, err = chain.Sign(id, fees, u.Nonce); err != nil {
			return err
		}
		u.TxHash = hash.Hex()
		signed, err := tx.MarkSigned(ctx, learning, account, u)
		if err == nil && !signed {
			err = fmt.Errorf("the upload of learning %s was moved on meanwhile", learning)
		}
		return err
	})
	return u, err
}

// maxBefore is how many transactions before one are sent again with it.
const maxBefore = 100

// send sends a stored transaction, and those before it that may not have arrived, without which the chain does not take
// it: their workers may have died. Then it waits for the block.
func (p *Pipeline) send(ctx context.Context, chain *upload.Chain, u records.Upload) (block uint64, err error) {
	hash := common.HexToHash(u.TxHash)
	block, err = chain.Confirmed(ctx, hash, u.Nonce)
	if err != nil || block > 0 {
		return block, err
	}
	used, err := chain.Nonce(ctx)
	if err != nil {
		return 0, err
	}
	before, err := p.db.SignedBefore(ctx, chain.Account.Hex(), used, u.Nonce, maxBefore)
	if err != nil {
		return 0, err
	}
	for _, raw := range append(before, u.RawTx) {
		if err := chain.Send(ctx, raw); err != nil {
			return 0, err
		}
	}
	return chain.Await(ctx, u.RawTx, hash, u.Nonce)
}

// afterRefusal goes by the chain: the digest is there already, or there is to be another transaction.
func (p *Pipeline) afterRefusal(ctx context.Context, job *worker.Job[stages.Upload], chain *upload.Chain, u records.Upload, id cid.Cid, refusal error) error {
	known, err := chain.Known(ctx, id)
	if err != nil {
		return err
	}
	if known {
		return p.confirm(ctx, job, u, 0)
	}
	if _, err := p.sign(ctx, chain, job.Payload.LearningID, u, id); err != nil {
		return err
	}
	return fmt.Errorf("signed anew: %w", refusal)
}

// confirm stores that the chain has the learning, and completes the job.
func (p *Pipeline) confirm(ctx context.Context, job *worker.Job[stages.Upload], u records.Upload, block uint64) error {
	return finish(ctx, p, job, Uploaded{u.CID, u.TxHash, block}, func(tx records.Tx) error {
		_, err := tx.MarkConfirmed(ctx, job.Payload.LearningID, block)
		return err
	})
}

// chain gives the connection to a chain, which is kept.
func (p *Pipeline) chain(ctx context.Context, to stages.Chain) (*upload.Chain, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.chains[to]; c != nil {
		return c, nil
	}
	c, err := upload.DialChain(ctx, p.http, to.RPCURL, to.Contract, to.PrivateKeyRef)
	if err != nil {
		return nil, err
	}
	p.chains[to] = c
	return c, nil
}

func randomKey() []byte {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	return key
}
