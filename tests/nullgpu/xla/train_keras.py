# SPDX-License-Identifier: Apache-2.0
"""train_keras.py - a few steps of a small convolution net in Keras on TensorFlow, and what its pool held."""
import numpy as np, tensorflow as tf
m = tf.keras.Sequential([tf.keras.layers.Input((32, 32, 3)), tf.keras.layers.Conv2D(32, 3, activation="relu"),
    tf.keras.layers.BatchNormalization(), tf.keras.layers.MaxPooling2D(), tf.keras.layers.Conv2D(64, 3, activation="relu"),
    tf.keras.layers.GlobalAveragePooling2D(), tf.keras.layers.Dense(10)])
m.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
m.fit(np.random.rand(512, 32, 32, 3).astype("f"), np.random.randint(0, 10, 512), batch_size=128, epochs=1, verbose=2)
print("pool", tf.config.experimental.get_memory_info("GPU:0")["peak"])
