# SPDX-License-Identifier: Apache-2.0
"""Series, tables, what is liked and games by packages and families that stood in no list: --model NAME."""
import os
import sys
import tempfile
import warnings

os.environ.update(HF_HUB_OFFLINE="1", WANDB_DISABLED="true", TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD="1")
warnings.filterwarnings("ignore")

import numpy  # noqa: E402
import torch  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from fullsize import CARD, classes, images, lengths, main  # noqa: E402
from newcomers_vision import learn  # noqa: E402


def seasons(batch=32):
    """transformers' Autoformer: series fall into trends and seasons, what repeats is looked up, a likelihood."""
    import transformers as t
    model = t.AutoformerForPrediction(t.AutoformerConfig(
        prediction_length=48, context_length=192, lags_sequence=[1, 2, 3, 7], num_time_features=4, d_model=128,
        encoder_layers=2, decoder_layers=2, encoder_ffn_dim=512, decoder_ffn_dim=512)).cuda()
    past = 192 + 7

    def loss():
        return model(past_values=images(batch, past), past_time_features=images(batch, past, 4),
                     past_observed_mask=torch.ones(batch, past).to(CARD), future_values=images(batch, 48),
                     future_time_features=images(batch, 48, 4)).loss

    learn(model, loss, rate=1e-4)


def variates(batch=64):
    """iTransformer: a word is a whole series, forecasts of two lengths."""
    from iTransformer import iTransformer
    model = iTransformer(num_variates=137, lookback_len=192, dim=256, depth=4, heads=8, dim_head=32, pred_length=(24, 96),
                         num_tokens_per_variate=1, use_reversible_instance_norm=True, flash_attn=False).cuda()
    learn(model, lambda: model(images(batch, 192, 137), targets=(images(batch, 24, 137), images(batch, 96, 137))), rate=3e-4)


def hierarchy(windows=1024):
    """neuralforecast: N-HiTS, windows of many series, its own fit (lightning)."""
    import pandas
    from neuralforecast import NeuralForecast
    from neuralforecast.losses.pytorch import MQLoss
    from neuralforecast.models import NHITS
    time = pandas.date_range("2026-01-01", periods=400, freq="h")
    series = pandas.concat([pandas.DataFrame(dict(unique_id=f"s{i}", ds=time, y=numpy.random.rand(400))) for i in range(24)])
    model = NHITS(h=48, input_size=192, loss=MQLoss(level=[80, 90]), max_steps=4, windows_batch_size=windows, batch_size=24,
                  scaler_type="standard", accelerator="gpu", devices=1, enable_progress_bar=False, logger=False,
                  enable_checkpointing=False, enable_model_summary=False)
    NeuralForecast(models=[model], freq="h").fit(series, val_size=48)


def waves(batch=1024):
    """rtdl_num_embeddings: numbers of a table as waves, then layers."""
    from rtdl_num_embeddings import PeriodicEmbeddings
    model = torch.nn.Sequential(
        PeriodicEmbeddings(80, 24, lite=False), torch.nn.Flatten(), torch.nn.Linear(80 * 24, 512), torch.nn.ReLU(),
        torch.nn.Dropout(0.1), torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(512, 7)).cuda()
    rows, kinds = torch.randn(3 * batch, 80).to(CARD), classes(7, 3 * batch)
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for _ in range(2):
        for some in torch.randperm(len(rows)).to(CARD).split(batch):
            model.train()
            opt.zero_grad()
            loss = F.cross_entropy(model(rows[some]), kinds[some])
            loss.backward()
            opt.step()
        model.eval()
        with torch.inference_mode():
            torch.cat([model(part) for part in rows.split(4 * batch)]).argmax(1).cpu()


def columns(batch=256):
    """tab-transformer-pytorch: columns of a table attend to each other."""
    from tab_transformer_pytorch import FTTransformer
    model = FTTransformer(categories=(10, 5, 6, 5, 8, 40), num_continuous=30, dim=128, dim_out=1, depth=4, heads=8,
                          attn_dropout=0.1, ff_dropout=0.1).cuda()

    def loss():
        made = model(classes(5, batch, 6), images(batch, 30))
        return F.binary_cross_entropy_with_logits(made[:, 0], images(batch))

    learn(model, loss, rate=1e-4)


def next_likes(batch=256):
    """recbole: SASRec, what is liked next, its data set, its loaders and its trainer."""
    folder = tempfile.mkdtemp(prefix="thirds.", dir=os.environ.get("TMPDIR"))
    os.makedirs(f"{folder}/likes")
    with open(f"{folder}/likes/likes.inter", "w") as f:
        print("user_id:token\titem_id:token\ttimestamp:float", file=f)
        for user in range(batch // 8):
            for when in range(27):
                print(f"u{user}\ti{int(torch.randint(0, 5000, ()))}\t{when}", file=f)
    sys.argv = sys.argv[:1]
    os.chdir(folder)  # it writes logs there
    for old, new in dict(float_="float64", complex_="complex128", bool8="bool_", unicode_="str_").items():
        setattr(numpy, old, getattr(numpy, new))  # it still uses the older names
    from recbole.config import Config
    from recbole.data import create_dataset, data_preparation
    from recbole.model.sequential_recommender import SASRec
    from recbole.utils import get_trainer
    config = Config(model="SASRec", dataset="likes", config_dict=dict(
        data_path=folder, checkpoint_dir=folder, load_col=dict(inter=["user_id", "item_id", "timestamp"]), epochs=1,
        train_batch_size=batch, eval_batch_size=batch, train_neg_sample_args=None, MAX_ITEM_LIST_LENGTH=50, n_layers=2,
        hidden_size=128, inner_size=256, show_progress=False, gpu_id="0", seed=torch.initial_seed() % (1 << 31),
        eval_args=dict(split=dict(LS="valid_and_test"), order="TO", group_by="user", mode="full")))
    data = create_dataset(config)
    train, valid, _ = data_preparation(config, data)
    model = SASRec(config, train.dataset).to(config["device"])
    get_trainer(config["MODEL_TYPE"], config["model"])(config, model).fit(train, valid, saved=False, show_progress=False)


class Robot:
    """Frames or states that nobody simulates, and an end after so many steps."""

    def __new__(cls, shape, actions, most=64, drawn=False):
        import gymnasium

        class Steps(gymnasium.Env):
            observation_space = gymnasium.spaces.Box(-1., 1., shape, numpy.float32)
            action_space = (gymnasium.spaces.Discrete(actions) if drawn else
                            gymnasium.spaces.Box(-1., 1., (actions,), numpy.float32))

            def reset(self, seed=None, options=None):
                self.left = lengths(1, most, 4 * most, 8)[0] if drawn else most
                return numpy.zeros(shape, numpy.float32), {}

            def step(self, action):
                self.left -= 1
                return numpy.zeros(shape, numpy.float32), float(self.left % 5 == 0), self.left <= 0, False, {}
        return Steps()


def whole_games(games=8):
    """tianshou: REINFORCE of frames, whole games are one batch, its collector and its trainer."""
    import tianshou as ts
    from tianshou.algorithm.modelfree.reinforce import ProbabilisticActorPolicy, Reinforce
    from tianshou.algorithm.optim import AdamOptimizerFactory
    from tianshou.env.atari.atari_network import DQNet
    from tianshou.utils.net.discrete import DiscreteActor
    space = Robot((4, 84, 84), 6, drawn=True)
    seen = DQNet(4, 84, 84, space.action_space, features_only=True)
    actor = DiscreteActor(preprocess_net=seen, action_shape=6, softmax_output=False).cuda()
    policy = ProbabilisticActorPolicy(actor=actor, dist_fn=lambda x: torch.distributions.Categorical(logits=x),
                                      action_space=space.action_space, observation_space=space.observation_space,
                                      action_scaling=False, action_bound_method=None)
    learner = Reinforce(policy=policy, gamma=0.99, optim=AdamOptimizerFactory(lr=1e-4))
    worlds = ts.env.DummyVectorEnv([lambda: Robot((4, 84, 84), 6, drawn=True) for _ in range(4)])
    taken = ts.data.Collector(learner, worlds, ts.data.VectorReplayBuffer(300 * games, 4))
    taken.reset()
    learner.run_training(ts.trainer.OnPolicyTrainerParams(
        training_collector=taken, max_epochs=1, epoch_num_steps=games * 150, collection_step_num_episodes=games,
        collection_step_num_env_steps=None, update_step_num_repetitions=1, batch_size=None, test_step_num_episodes=0,
        verbose=False, show_progress=False))


def many_robots(envs=1024):
    """skrl: PPO of many robots, its memory on the card, its runner."""
    import gymnasium
    from skrl.agents.torch.ppo import PPO
    from skrl.memories.torch import RandomMemory
    from skrl.models.torch import DeterministicMixin, GaussianMixin, Model

    def layers(out):
        return torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ELU(), torch.nn.Linear(256, 128), torch.nn.ELU(),
                                   torch.nn.Linear(128, out))

    class Policy(GaussianMixin, Model):
        def __init__(self, seen, done):
            Model.__init__(self, observation_space=seen, action_space=done, device="cuda")
            GaussianMixin.__init__(self)
            self.net, self.log_std = layers(12), torch.nn.Parameter(torch.zeros(12))

        def compute(self, inputs, role):
            return self.net(inputs["observations"]), dict(log_std=self.log_std)

    class Value(DeterministicMixin, Model):
        def __init__(self, seen, done):
            Model.__init__(self, observation_space=seen, action_space=done, device="cuda")
            DeterministicMixin.__init__(self)
            self.net = layers(1)

        def compute(self, inputs, role):
            return self.net(inputs["observations"]), {}

    seen, done = (gymnasium.spaces.Box(-1., 1., (n,), numpy.float32) for n in (64, 12))
    agent = PPO(models=dict(policy=Policy(seen, done).cuda(), value=Value(seen, done).cuda()),
                memory=RandomMemory(memory_size=24, num_envs=envs, device="cuda"), observation_space=seen, action_space=done,
                device="cuda", cfg=dict(rollouts=24, learning_epochs=2, mini_batches=4,
                                        experiment=dict(write_interval=0, checkpoint_interval=0)))
    agent.init()
    agent.enable_training_mode(True)
    now = images(envs, 64)
    for step in range(49):
        agent.pre_interaction(timestep=step, timesteps=49)
        with torch.no_grad():
            moves = agent.act(now, None, timestep=step, timesteps=49)[0]
            then, over = images(envs, 64), torch.zeros(envs, 1, dtype=torch.bool, device=CARD)
            agent.record_transition(observations=now, states=None, actions=moves, rewards=images(envs, 1), next_observations=then,
                                    next_states=None, terminated=over, truncated=over, infos={}, timestep=step, timesteps=49)
        now = then
        agent.post_interaction(timestep=step, timesteps=49)


def softly(batch=256):
    """torchrl: soft actor-critic of frames out of its memory, nets called at once (vmap)."""
    from tensordict import TensorDict
    from tensordict.nn import NormalParamExtractor, TensorDictModule
    from torchrl.data import Bounded, LazyTensorStorage, TensorDictReplayBuffer
    from torchrl.modules import MLP, ConvNet, ProbabilisticActor, TanhNormal, ValueOperator
    from torchrl.objectives import SACLoss, SoftUpdate

    def eyes():
        return ConvNet(in_features=4, num_cells=[32, 64, 64], kernel_sizes=[8, 4, 3], strides=[4, 2, 1])

    class Value(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.eyes, self.head = eyes(), MLP(in_features=3136 + 6, out_features=1, num_cells=[256])

        def forward(self, seen, action):
            return self.head(torch.cat((self.eyes(seen), action), -1))

    net = torch.nn.Sequential(eyes(), MLP(in_features=3136, out_features=12, num_cells=[256]), NormalParamExtractor())
    actor = ProbabilisticActor(TensorDictModule(net, ["pixels"], ["loc", "scale"]), in_keys=["loc", "scale"],
                               distribution_class=TanhNormal, return_log_prob=True, spec=Bounded(-1., 1., (6,))).cuda()
    value = ValueOperator(Value(), in_keys=["pixels", "action"]).cuda()
    loss_of = SACLoss(actor, value, num_qvalue_nets=2, action_spec=Bounded(-1., 1., (6,))).cuda()
    loss_of.make_value_estimator(gamma=0.99)
    slow, opt = SoftUpdate(loss_of, eps=0.995), torch.optim.Adam(loss_of.parameters(), lr=3e-4)
    memory = TensorDictReplayBuffer(storage=LazyTensorStorage(1024), batch_size=batch)

    def end():
        return torch.zeros(1024, 1, dtype=torch.bool)

    frames = torch.rand(1024, 4, 84, 84)
    memory.extend(TensorDict(dict(
        pixels=frames, action=torch.rand(1024, 6), next=TensorDict(dict(
            pixels=frames, reward=torch.rand(1024, 1), done=end(), terminated=end()), [1024])), [1024]))
    for _ in range(4):
        said = loss_of(memory.sample().to("cuda"))
        loss = said["loss_actor"] + said["loss_qvalue"] + said["loss_alpha"]
        opt.zero_grad()
        loss.backward()
        opt.step()
        slow.step()


if __name__ == "__main__":
    main(globals())
