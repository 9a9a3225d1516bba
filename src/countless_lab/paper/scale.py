"""Scales of the paper's protocol: all of it, an hour's work for two cores, or a smoke test."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PaperScale:
    """Sizes of the experiments.

    ``orders`` is how many random orders (or sets of orders) each method is tried under. ``rows`` are drawn at random
    from a larger table, and each model sees ``rows_seen`` of them in training, in whole passes of at least ``epochs``.
    Budgets above ``first_order_above`` samples are tried under the first order only.
    """

    name: str
    orders: int
    rows: int | None
    epochs: int
    rows_seen: int
    batch: int
    learning_rate: float
    queries: int
    samples: tuple[int, ...]
    first_order_above: int
    ablation_samples: int  # of the studies of model size and of masking
    strings: int | None
    text_network: str = "default"
    text_epochs: int = 1
    text_queries: int = 100
    text_samples: int = 1_000
    ensembles: tuple[int, ...] = (5, 10, 15)  # orders of the multi-order models in the table of likelihoods
    ensemble: int = 10  # and in every other exhibit
    hiddens: tuple[int, ...] = (16, 64, 256)
    embeddings: tuple[int, ...] = (2, 8, 32)
    maskings: tuple[str, ...] = ("uniform", "0.1", "0.3", "0.5", "0.7", "0.9")
    longer: tuple[tuple[str, int], ...] = ()  # data sets that take more epochs

    @property
    def hidden(self) -> int:
        """Units of a hidden layer where the exhibit is not about them."""
        return max(self.hiddens)

    @property
    def embedding(self) -> int:
        """Size of the embeddings where the exhibit is not about them."""
        return max(self.embeddings)

    def epochs_for(self, name: str, rows: int) -> int:
        """Passes over the data set ``name``, of which ``rows`` rows are learned."""
        return dict(self.longer).get(name, max(self.epochs, round(self.rows_seen / max(1, rows))))

    def orders_for(self, samples: int) -> range:
        """The random orders under which a budget of ``samples`` is tried."""
        return range(self.orders if samples <= self.first_order_above else 1)


SCALES = {
    "smoke": PaperScale(
        name="smoke",
        orders=2,
        rows=2_000,
        epochs=1,
        rows_seen=0,
        batch=64,
        learning_rate=2e-3,
        queries=20,
        samples=(10, 100),
        first_order_above=10,
        ablation_samples=50,
        ensembles=(2, 3),
        ensemble=2,
        hiddens=(16, 32),
        embeddings=(2, 8),
        maskings=("uniform", "0.5"),
        strings=2_000,
        text_queries=10,
        text_samples=20,
    ),
    "small": PaperScale(
        name="small",
        orders=3,
        rows=300_000,
        epochs=2,
        rows_seen=600_000,
        batch=256,
        learning_rate=2e-3,
        queries=300,
        samples=(100, 1_000),
        first_order_above=1_000,
        ablation_samples=1_000,
        strings=200_000,
    ),
    "full": PaperScale(
        name="full",
        orders=8,
        rows=None,
        epochs=20,
        rows_seen=0,
        batch=2_048,
        learning_rate=5e-4,
        queries=1_000,
        samples=(100, 1_000, 10_000),
        first_order_above=10_000,
        ablation_samples=1_000,
        strings=None,
        text_network="paper",
        text_epochs=20,
        longer=(("kdd", 200),),
    ),
}
