-- The ledger of the demo. Nothing in it keeps a payment from being posted twice: that is what the demo proves.
create schema if not exists sluice_demo;
create table if not exists sluice_demo.ledger (
    entry      bigint generated always as identity primary key,
    queue      text   not null,
    payment_id text   not null,
    account    text   not null,
    cents      bigint not null
)
