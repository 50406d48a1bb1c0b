"""How a broker keeps its topics, consumer groups and offsets (rocketmq.md §15)."""

JSON, ROCKSDB, SINGLE_ROCKSDB, ROCKSDB_V2 = "JSON", "ROCKSDB", "SINGLE_ROCKSDB", "ROCKSDB_V2"

STORE_FORMS = {
    JSON: "topics.json, subscriptionGroup.json and consumerOffset.json, always current",
    ROCKSDB: "three RocksDBs below config/ (storeType=defaultRocksDB)",
    SINGLE_ROCKSDB: "one RocksDB, config/metadata (useSingleRocksDBForAllConfigs=true)",
    ROCKSDB_V2: "config/rdb (configManagerVersion=v2), which no command exports",
}
"""What each form means."""

FORM_OF_FOLDER = {"topics": ROCKSDB, "metadata": SINGLE_ROCKSDB, "rdb": ROCKSDB_V2}
"""The form by the folder below ``config/`` whose file CURRENT is its sign."""
