from ragfilter import served

served.collections()
